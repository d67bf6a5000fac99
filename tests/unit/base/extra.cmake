# File systems without links.
target_link_options(unit_base_outfile PRIVATE -Wl,--wrap=linkat,--wrap=renameat2)
# What a container refuses.
target_link_options(unit_base_confined PRIVATE -Wl,--wrap=setgroups)
