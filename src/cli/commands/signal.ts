/** `pawl signal send|list`: signals of a job. */
import { JobNotFound } from '../../core/errors.ts'
import { defineSignal } from '../../engine/define-signal.ts'
import { relative } from '../../environment/times.ts'
import { currentWait } from '../../http/waits.ts'
import { CLIENT } from '../../stores/contract/requester.ts'
import type { Requester } from '../../stores/contract/store.ts'
import type { SignalRecord } from '../../stores/contract/waits.ts'
import { loadJobFiles } from '../job-files.ts'
import { readAll, readJson } from '../json-input.ts'
import { withPawl } from '../opening.ts'
import type { Column } from '../output.ts'
import { type Call, type CommandSpec, textOf } from '../spec.ts'
import { waitText } from '../story.ts'
import { visible } from '../visible.ts'
import { identityOf, OPERATOR_OPTIONS } from './job-act.ts'

const COLUMNS: readonly Column[] = [
  { head: 'FACT', right: true },
  { head: 'SENT' },
  { head: 'NAME' },
  { head: 'KEY' },
  { head: 'RECEIVED' },
  { head: 'PAYLOAD' },
]

async function send(call: Call): Promise<undefined> {
  const { output, environment } = call
  const [id = '', name = '', given = 'null'] = call.args
  const signal = defineSignal({ name })
  const text = given === '-' ? await readAll(call.stdin, 'payload') : given
  const payload = readJson(text, 'payload')
  const requester = requesterOf(call)
  const key = textOf(call, 'key') ?? environment.ids.next()
  await withPawl(call, async (pawl) => {
    const { kind, job } = await pawl.job(id).signal(signal, payload, { key, requester })
    if (output.json) output.record({ id: job.id, name, key, kind, state: job.state })
    else output.line(kind)
    if (kind === 'same') output.say('Nothing was stored: the job has a signal of this key already.')
  })
  return undefined
}

/** An operator only if the command line says so: signals are sent by programs as well. */
function requesterOf(call: Call): Requester {
  const { reason, operator } = call.options
  if (reason === undefined && operator === undefined) return CLIENT
  const identity = identityOf(call)
  return { actor: 'operator', operator: identity.name, note: identity.reason }
}

async function list(call: Call): Promise<undefined> {
  const { output, options, settings } = call
  const [id = ''] = call.args
  const jobs = options.jobs === undefined ? [] : await loadJobFiles(settings.jobs.value)
  await withPawl(
    call,
    async ({ store, internals }) => {
      const job = await store.get(id)
      if (job === undefined) throw new JobNotFound(visible(id))
      const history = await store.waits.history(id)
      const wait = currentWait(internals.lifecycles, job, history)
      const now = store.now()
      if (output.json) {
        for (const { payload, ...signal } of history.signals) {
          const received = signal.receivedBy !== undefined
          output.record({ kind: 'signal', id, ...signal, received }, { payload })
          await output.taken()
        }
        if (wait !== undefined) output.record({ kind: 'wait', id, ...wait })
        return
      }
      output.table(
        COLUMNS,
        history.signals.map((signal) => rowOf(signal, now)),
      )
      if (history.signals.length === 0) output.say('The job has no signals.')
      const waits = wait === undefined ? 'does not wait now' : `waits for ${waitText(wait, now)}`
      output.say(`The job ${waits}.`)
    },
    { jobs },
  )
  return undefined
}

function rowOf({ seq, at, name, key, receivedBy, payload }: SignalRecord, now: number): string[] {
  const read = receivedBy === undefined ? 'unread' : `by fact ${receivedBy}`
  return [String(seq), relative(at, now), name, key, read, payload]
}

const ID = '0198a1b2-0000-7000-8000-000000000001'
const ID_ARGUMENT = { flags: '<job>', says: 'the id of the job' }

export const commands: readonly CommandSpec[] = [
  {
    name: 'signal send',
    summary: 'Send a signal to a job; it is durable when the answer is printed',
    details:
      'Prints "sent", or "same" if the job has a signal of this name and key already. A job that ' +
      'waits for the signal becomes ready; otherwise the signal is kept until the job waits for ' +
      'it. With --reason the ledger records it as sent by an operator.',
    args: [
      ID_ARGUMENT,
      { flags: '<name>', says: 'the name of the signal' },
      { flags: '[payload]', says: 'its payload as JSON, - for stdin; null if absent' },
    ],
    options: [
      { flags: '--key <key>', says: 'at most one signal per name and key; a new key if absent' },
      { flags: '--reason <text>', says: 'the reason; recorded in the ledger' },
      ...OPERATOR_OPTIONS.filter(({ flags }) => flags.startsWith('--operator')),
    ],
    examples: [
      [`pawl signal send ${ID} approval '{"by":"ann"}'`, 'with a payload'],
      [`pawl signal send ${ID} approval --key mail-7`, 'may be repeated: it is stored once'],
      [`pawl signal send ${ID} approval --reason "the mail was lost"`, 'as an operator'],
      [`cat answer.json | pawl signal send ${ID} approval -`, 'the payload from stdin'],
    ],
    run: send,
  },
  {
    name: 'signal list',
    summary: 'List the signals of a job, and what it waits for',
    details:
      'Prints the signals in the order in which they were sent, each as unread or with the fact ' +
      'of the wait that received it. With --json, what the job waits for is the last line.',
    args: [ID_ARGUMENT],
    options: [
      { flags: '--jobs <file>', says: 'a job file with its own lifecycles', repeats: true },
    ],
    examples: [
      [`pawl signal list ${ID}`, 'for people'],
      [`pawl signal list ${ID} --json`, 'one object per line'],
    ],
    run: list,
  },
]
