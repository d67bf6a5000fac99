(* Exceptions that leave several calls: caught there, passed on by a handler that does not match, raised without a backtrace. *)
exception Found of int

let[@inline never] leaf n = if n = 0 then raise (Found 7); n
let[@inline never] middle n = let r = leaf n in r + 1
let[@inline never] outer n = let r = middle n in r + 1
let[@inline never] catcher n = try outer n with Found k -> k
let[@inline never] rethrower n = try outer n with Not_found -> 0
let[@inline never] catch_rethrown n = try rethrower n with Found k -> k + 1
let[@inline never] notrace n = try (if n = 0 then raise_notrace (Found 3)); outer n with Found k -> k

(* recursion whose calls end by an exception that they catch themselves *)
let[@inline never] pick k = if k = 0 then raise Not_found; k - 1
let[@inline never] rec go n = if n > 0 then walk n 2 + 1 else leaf 1
and[@inline never] walk n k = match pick k with
  | exception Not_found -> leaf 1
  | left -> let r = go (n - 1) in r + walk n left

let () =
  let a = catcher 0 in
  let b = catcher 1 in
  let c = catch_rethrown 0 in
  let d = notrace 0 in
  let e = notrace 1 in
  let f = go 2 in
  exit (if a + b + c + d + e = 7 + 3 + 8 + 3 + 3 && f > 0 then 0 else 1)
