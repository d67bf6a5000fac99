# File systems without links.
target_link_options(unit_base_outfile PRIVATE -Wl,--wrap=linkat,--wrap=renameat2)
