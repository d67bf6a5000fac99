-- Built after the last row: sorting once is cheaper than keeping order all the way. Those of `call` are made
-- empty, and written with the calls.

CREATE INDEX call_symbol ON call (symbol_id);
CREATE INDEX call_parent ON call (parent_id);
CREATE INDEX slice_thread_start ON slice (thread_id, start_ns);
CREATE INDEX slice_cpu_start ON slice (cpu, start_ns);
CREATE INDEX offcpu_thread_start ON offcpu (thread_id, start_ns);
CREATE INDEX offcpu_call ON offcpu (call_id);
CREATE INDEX stall_start ON stall (start_ns);
CREATE INDEX gap_thread_start ON gap (thread_id, start_ns);
CREATE INDEX gap_start ON gap (start_ns);
CREATE INDEX mark_time ON mark (time_ns);
CREATE INDEX symbol_name ON symbol (name);
CREATE INDEX thread_tid ON thread (tid);
