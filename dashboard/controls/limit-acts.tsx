/** What operators do to limits: set a number, or return to the number of the code. */
import { type Signal, signal } from '@preact/signals'
import { shellWord } from '../../src/doctor/shell-word.ts'
import { type Answer, call } from '../api/client.ts'
import { count, counted } from '../format.ts'
import { askControl, DryRun } from './act.tsx'
import { Field } from './field.tsx'

/** A limit, or one key of it. */
interface LimitTarget {
  readonly limit: string
  readonly key?: string
  readonly max: number | null
}

export function titleOf({ limit, key }: { limit: string; key?: string }): string {
  return key === undefined ? limit : `${limit} · ${key}`
}

const wordsOf = (key: string | undefined) => (key === undefined ? [] : [`--key=${shellWord(key)}`])
const keyOf = (key: string | undefined) => (key === undefined ? {} : { key })

/** How many jobs may run; undefined if the text is no number. */
function numberOf(text: string): number | undefined {
  return /^\d{1,9}$/.test(text.trim()) ? Number(text) : undefined
}

type Report = Answer<'setLimit'>

function previewOf({ changed, max, used, blocked, starts }: Report): string {
  if (!changed) return 'Nothing would change.'
  const room = max === null ? 'any number of jobs' : counted(max, 'job')
  const moves =
    starts === null
      ? ''
      : ` ${count(starts)} of ${counted(blocked, 'blocked job')} would become ready.`
  return `${room} may run; ${count(used)} run now.${moves}`
}

export function askToSet({ limit, key, max }: LimitTarget, then: () => void): void {
  const text = signal(max === null ? '' : String(max))
  const send = (body: { reason: string; operator?: string; dryRun?: boolean }) =>
    call('setLimit', {
      params: { limit },
      body: { ...body, ...keyOf(key), concurrency: numberOf(text.value) ?? 0 },
    })
  askControl({
    title: `Set ${titleOf({ limit, key })}`,
    verb: 'Set the limit',
    says: 'The number counts until it is reset, whatever the code says. 0 lets no job start.',
    fields: (
      <Value
        text={text}
        ask={async () => previewOf(await send({ reason: 'preview', dryRun: true }))}
      />
    ),
    isReady: () => numberOf(text.value) !== undefined,
    ...{ command: 'pawl limit set', object: limit },
    options: () => [...wordsOf(key), `--concurrency=${numberOf(text.value) ?? '…'}`],
    act: async (signed) => {
      const { changed, after, starts } = await send(signed)
      if (!changed) return 'Nothing changed: it is so already.'
      const moved = starts ? ` ${counted(starts, 'blocked job')} may start.` : ''
      return `${titleOf({ limit, key })}: ${count(after ?? 0)} may run.${moved}`
    },
    then,
  })
}

function Value({ text, ask }: { text: Signal<string>; ask: () => Promise<string> }) {
  const isNumber = numberOf(text.value) !== undefined
  return (
    <>
      <Field
        label="How many jobs may run at once"
        text={text}
        fault={isNumber ? undefined : 'Write a whole number; 0 lets no job start.'}
      />
      {isNumber && <DryRun of={text.value} ask={ask} />}
    </>
  )
}

export function askToReset({ limit, key }: LimitTarget, then: () => void): void {
  const send = (body: { reason: string; operator?: string; dryRun?: boolean }) =>
    call('resetLimit', { params: { limit }, body: { ...body, ...keyOf(key) } })
  askControl({
    title: `Reset ${titleOf({ limit, key })}`,
    verb: 'Reset the limit',
    says: 'The number of the code counts again.',
    preview: async () => previewOf(await send({ reason: 'preview', dryRun: true })),
    ...{ command: 'pawl limit reset', object: limit },
    options: () => wordsOf(key),
    act: async (signed) => {
      const { changed, max } = await send(signed)
      if (!changed) return 'Nothing changed: no operator had set it.'
      return `${titleOf({ limit, key })}: ${max === null ? 'any number' : count(max)} may run.`
    },
    then,
  })
}
