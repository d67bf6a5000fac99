-- Functions by the time they took themselves: without what they called, and without time off the CPU.
SELECT function, module, calls, duration(self_ns) AS self, duration(total_ns) AS total, duration(min_ns) AS min,
       duration(max_ns) AS max
FROM functions
ORDER BY self_ns DESC, function
LIMIT 40
