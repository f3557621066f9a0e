/** What operators do to queues: pause, resume, and limits of depth and wait. */
import { type Signal, signal } from '@preact/signals'
import { shellWord } from '../../src/doctor/shell-word.ts'
import { call } from '../api/client.ts'
import type { Queue } from '../api/operations.ts'
import { count } from '../format.ts'
import type { Signed } from '../ui/dialogs.tsx'
import { askControl } from './act.tsx'
import { readDuration, writeDuration } from './duration.ts'
import { Field } from './field.tsx'

const DONE = 'Nothing changed: it is so already.'

export function askToPause({ name, lanes }: Queue, then: () => void): void {
  askControl({
    title: `Pause queue ${name}`,
    verb: 'Pause',
    says:
      'No job of it is claimed until it is resumed. ' +
      `${count(lanes.ready)} wait, ${count(lanes.held)} continue to run.`,
    ...{ command: 'pawl queue pause', object: name },
    act: async (signed) => {
      const { changed } = await call('pauseQueue', { params: { queue: name }, body: signed })
      return changed ? `Queue ${name} is paused.` : DONE
    },
    then,
  })
}

export function askToResume({ name, lanes }: Queue, then: () => void): void {
  askControl({
    title: `Resume queue ${name}`,
    verb: 'Resume',
    says: `${count(lanes.ready)} ready jobs may be claimed again, at once.`,
    ...{ command: 'pawl queue resume', object: name },
    act: async (signed) => {
      const { changed } = await call('resumeQueue', { params: { queue: name }, body: signed })
      return changed ? `Queue ${name} is resumed.` : DONE
    },
    then,
  })
}

/** A whole number, or null for an empty field; undefined if it is neither. */
function numberOf(text: string): number | null | undefined {
  if (text.trim() === '') return null
  return /^\d{1,12}$/.test(text.trim()) ? Number(text) : undefined
}

const waitOf = (text: string) => (text.trim() === '' ? null : readDuration(text))

export function askToLimit({ name, maxDepth, maxWaitMs }: Queue, then: () => void): void {
  const depth = signal(maxDepth === undefined ? '' : String(maxDepth))
  const wait = signal(maxWaitMs === undefined ? '' : writeDuration(maxWaitMs))
  const act = async (signed: Signed) => {
    const bounds = { maxDepth: numberOf(depth.value), maxWaitMs: waitOf(wait.value) }
    const body = { ...signed, ...bounds }
    const { changed } = await call('limitQueue', { params: { queue: name }, body })
    return changed ? `The limits of queue ${name} are changed.` : DONE
  }
  askControl({
    title: `Limit queue ${name}`,
    verb: 'Set limits',
    says: 'A full queue refuses new jobs. An empty field removes the limit.',
    fields: <Bounds depth={depth} wait={wait} />,
    isReady: () => numberOf(depth.value) !== undefined && waitOf(wait.value) !== undefined,
    ...{ command: 'pawl queue limit', object: name },
    options: () => [
      `--max-depth=${depth.value.trim() || 'none'}`,
      `--max-wait=${shellWord(wait.value.trim() || 'none')}`,
    ],
    act,
    then,
  })
}

function Bounds({ depth, wait }: { depth: Signal<string>; wait: Signal<string> }) {
  const isNumber = numberOf(depth.value) !== undefined
  const isTime = waitOf(wait.value) !== undefined
  return (
    <>
      <Field
        label="How many jobs may be ready"
        text={depth}
        placeholder="no limit"
        fault={isNumber ? undefined : 'Write a whole number, or nothing.'}
      />
      <Field
        label="How long a job may be ready"
        text={wait}
        placeholder="no limit"
        fault={isTime ? undefined : 'Write a duration such as 90s or 5m, or nothing.'}
      />
    </>
  )
}
