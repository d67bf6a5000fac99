"""step, with a uprobe at a function's entry, and at its return too: the target goes on, and the function is seen as the program has it."""
import glob
import signal
import subprocess

from hostile import *

need_root()
target = build('kill_target')


def sql(db, question):
    return subprocess.run([STALLTRAP, 'query', db, question, '--format', 'csv'], capture_output=True, text=True).stdout.split('\n')[1:-1]


for on in 'call:nap', 'func:nap>1ms':
    prefix = on[:4]
    t = start_ready([target])
    arm = Arm('--source', 'step', '-q', '-o', prefix, '-p', t.pid, '--on', on, '--snapshots', '3', '--cooldown', '200ms', '--no-decode')
    status = arm.end()
    check(status == 0 and len(glob.glob(prefix + '.*.data')) == 3, f'{on}: fires while the target is stepped', f'({status} {arm.text()})')
    check(t.poll() is None, f'{on}: the target goes on', t.returncode)
    t.send_signal(signal.SIGTERM)
    check(t.wait(PATIENCE) == 7, f'{on}: and ends as without us', t.returncode)
    subprocess.run([STALLTRAP, 'decode', prefix + '.3.data', '-o', prefix + '.db'], stdout=subprocess.DEVNULL)
    check(int(sql(prefix + '.db', "select count(*) from calls where function='nap'")[0]) > 0, f'{on}: the calls are there')
    check(not sql(prefix + '.db', "select function from calls where function like '[jit%'"), f'{on}: no code is made up for the trampoline')
finish()
