-- A read of what was not in the page cache, or of the file system's own blocks.
SELECT 'disk read' AS cause,
       'the thread slept ' || l.slept || ' in ' || l.syscall ||
       coalesce(' of ' || (SELECT value FROM stall_attr WHERE stall_id = l.id AND key = 'file' AND l.looked), '') ||
       ' until the disk had the data: kernel function ' || s.name AS evidence
FROM wait l
JOIN stack k ON k.id = l.kernel_stack_id
JOIN symbol s ON s.id = k.symbol_id
WHERE l.state = 'disk sleep' AND l.syscall IS NOT NULL
  AND (s.name IN ('filemap_read', 'filemap_get_pages', 'filemap_splice_read', '__bread_gfp', 'ext4_bread', 'ext4_read_bh',
                  'ext4_read_bh_lock', 'xfs_buf_iowait', 'read_cache_folio', 'do_read_cache_folio')
       OR (s.name IN ('iomap_dio_rw', '__iomap_dio_rw') AND l.syscall IN ('read', 'readv', 'pread64', 'preadv', 'preadv2')))
ORDER BY k.depth
LIMIT 1
