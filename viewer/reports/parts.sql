-- Where the time of a stall (the one that fired, or --stall) went: its parts add up to its duration. `who` woke the thread, or had the CPU
-- while it was ready, for who_ns of that. `part` is a table that `report` makes, from slice, offcpu, mark and stall.
SELECT what, state, syscall, place, who, sum(who_ns) AS who_ns, timer, count(*) AS times, sum(end_ns - start_ns) AS total_ns,
       max(end_ns - start_ns) AS longest_ns, round(100.0 * sum(end_ns - start_ns) / (SELECT sum(end_ns - start_ns) FROM part), 1) AS percent
FROM part
GROUP BY what, state, syscall, place, who, timer
ORDER BY total_ns DESC, min(start_ns)
LIMIT coalesce(:limit, -1)
