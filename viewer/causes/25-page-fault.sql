-- The thread touched a page that was not in memory, and waited for the disk. A fault that waits for something else (a lock of the
-- address space, a userfaultfd) does not go through these functions.
SELECT 'page fault from disk' AS cause,
       CASE WHEN s.name = 'do_swap_page' THEN 'a page was read back from swap' ELSE 'a page of a mapped file was read from disk' END ||
       ' (' || s.name || '): the thread slept ' || l.slept ||
       coalesce(' in ' || (SELECT u.name FROM stack f JOIN symbol u ON u.id = f.symbol_id
                           WHERE f.id = l.user_stack_id AND f.depth = 0) || '()', '') ||
       coalesce(', which the system call ' || l.syscall || ' touched it for', '') AS evidence
FROM wait l
JOIN stack k ON k.id = l.kernel_stack_id
JOIN symbol s ON s.id = k.symbol_id
WHERE l.state = 'disk sleep' AND s.name IN ('filemap_fault', 'do_swap_page')
  AND EXISTS (SELECT 1 FROM stack f JOIN symbol n ON n.id = f.symbol_id
              WHERE f.id = l.kernel_stack_id AND n.name IN ('handle_mm_fault', '__handle_mm_fault', 'exc_page_fault', 'do_user_addr_fault'))
ORDER BY k.depth
LIMIT 1
