-- The thread asked for its data to be on disk, or its write had to wait for the disk.
WITH l AS (SELECT * FROM wait),
     at(name) AS (
         SELECT s.name FROM l JOIN stack k ON k.id = l.kernel_stack_id JOIN symbol s ON s.id = k.symbol_id
         WHERE s.name IN ('folio_wait_writeback', 'wait_on_page_writeback', '__filemap_fdatawait_range', 'submit_bio_wait',
                          'blkdev_issue_flush', 'balance_dirty_pages', 'balance_dirty_pages_ratelimited_flags', 'jbd2_log_wait_commit',
                          'wait_transaction_locked', 'do_get_write_access', 'wbt_wait', 'rq_qos_wait', 'blk_mq_get_tag', 'iomap_dio_rw',
                          '__iomap_dio_rw', 'xlog_wait_on_iclog', 'btrfs_wait_ordered_range', 'btrfs_sync_log', 'fuse_fsync_common')
            OR (l.syscall NOT LIKE '%write%' AND s.name LIKE '%sync%')
         ORDER BY k.depth LIMIT 1)
SELECT 'disk write (' || l.syscall || ')' AS cause,
       'the thread slept ' || l.slept || ' in ' || l.syscall ||
       coalesce(' of ' || (SELECT value FROM stall_attr WHERE stall_id = l.id AND key = 'file' AND l.looked), '') ||
       coalesce(': kernel function ' || (SELECT name FROM at), '') AS evidence
FROM l
WHERE (l.syscall IN ('fsync', 'fdatasync', 'sync', 'syncfs', 'sync_file_range', 'msync')
       OR (EXISTS (SELECT 1 FROM at)
           AND l.syscall IN ('write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'fallocate', 'ftruncate', 'copy_file_range', 'sendfile',
                             'splice', 'io_uring_enter', 'io_submit')))
