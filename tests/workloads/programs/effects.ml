(* Effects: fibers that ask their handler; one that is given up; one that ends by an exception; two that a scheduler runs in turns; one
   that is continued with an exception. *)
open Effect
open Effect.Deep

type _ Effect.t += Ask : int -> int Effect.t | Stop : int -> unit Effect.t | Yield : unit Effect.t
exception Gone

let[@inline never] leaf n = n + 1

(* asked twice *)
let[@inline never] ask n = let r = perform (Ask n) in leaf r
let[@inline never] inner n = let r = ask n in leaf r
let[@inline never] outer n = let a = inner n in let b = inner (n + 1) in leaf (a + b)
let[@inline never] answer n = leaf n + 0
let[@inline never] handled n =
  let effc : type a. a Effect.t -> ((a, int) continuation -> int) option = function
    | Ask n -> Some (fun k -> let m = answer n in continue k m)
    | _ -> None in
  let r = match_with outer n { retc = (fun x -> x); exnc = raise; effc } in
  leaf r

(* left and never continued *)
let[@inline never] stopper n = perform (Stop n); leaf n
let[@inline never] dropped n =
  let effc : type a. a Effect.t -> ((a, int) continuation -> int) option = function
    | Stop n -> Some (fun _ -> answer n)
    | _ -> None in
  let r = match_with (fun n -> leaf (stopper n) + 1) n { retc = (fun x -> x); exnc = raise; effc } in
  leaf r

(* an exception out of the fiber, from before and from behind an effect *)
let[@inline never] thrower n = if n = 0 then raise Gone; leaf n
let[@inline never] thrown n =
  let effc : type a. a Effect.t -> ((a, int) continuation -> int) option = function
    | Ask n -> Some (fun k -> let m = answer n in continue k m)
    | _ -> None in
  let body n = if n > 0 then ignore (ask n); thrower 0 + 1 in
  let r = match_with body n { retc = (fun x -> x); exnc = (fun _ -> 5); effc } in
  leaf r

(* continued with an exception that it catches *)
let[@inline never] cancelled n = let r = (try ask n with Gone -> 3) in leaf r
let[@inline never] cancel n =
  let effc : type a. a Effect.t -> ((a, int) continuation -> int) option = function
    | Ask _ -> Some (fun k -> discontinue k Gone)
    | _ -> None in
  let r = match_with (fun n -> cancelled n + 1) n { retc = (fun x -> x); exnc = raise; effc } in
  leaf r

(* in turns *)
let queue : (unit -> unit) Queue.t = Queue.create ()
let[@inline never] yield () = perform Yield; ignore (leaf 0)
let[@inline never] step n = yield (); ignore (leaf n)
let[@inline never] worker n = for i = 1 to n do step i done
let[@inline never] spawn n =
  let effc : type a. a Effect.t -> ((a, unit) continuation -> unit) option = function
    | Yield -> Some (fun k -> Queue.push (fun () -> continue k ()) queue)
    | _ -> None in
  match_with worker n { retc = (fun () -> ()); exnc = raise; effc };
  ignore (leaf n)
let[@inline never] run () = while not (Queue.is_empty queue) do (Queue.pop queue) (); ignore (leaf 0) done

let () =
  let h = handled 1 in
  let d = dropped 5 in
  let t = thrown 0 in
  let u = thrown 1 in
  let c = cancel 1 in
  spawn 3;
  spawn 2;
  run ();
  exit (if h > 0 && d = 7 && t = 6 && u = 6 && c = 6 then 0 else 1)
