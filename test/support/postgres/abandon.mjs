// A test process that starts a server, says how far it got, and will be killed. Argument: the JSON
// of a `Guarded`.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('guard.mjs', import.meta.url))
const guard = fork(program, [process.argv[2]], { detached: true })
process.send({ moment: 'forked' })
guard.once('message', ({ pid }) => process.send({ moment: 'started', pid }))
guard.send('start')
