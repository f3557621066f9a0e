/** What operators do to runs: start, resume, rewind, cancel, fork and link. */
import { signal } from '@preact/signals'
import { entryOf, type Run } from '../../src/core/run/run.ts'
import { shellWord } from '../../src/doctor/shell-word.ts'
import { type Answer, call, Refused } from '../api/client.ts'
import { counted } from '../format.ts'
import { runHref } from '../router.ts'
import { Action, openDialog } from '../ui/dialogs.tsx'
import { explainResume, resumeText } from './resume.tsx'

type Definitions = Answer<'listRunDefinitions'>['items']

interface FieldProps {
  readonly label: string
  readonly value: { value: string }
  readonly placeholder?: string
}

function Field({ label, value, placeholder }: FieldProps) {
  return (
    <label class="labelled">
      <span>{label}</span>
      <input
        class="field"
        value={value.value}
        placeholder={placeholder}
        maxLength={2000}
        onInput={(event) => {
          value.value = event.currentTarget.value
        }}
      />
    </label>
  )
}

export function askToResume(id: string, then: () => void): void {
  const force = signal('')
  const body = () => (force.value.trim() === '' ? {} : { force: [force.value.trim()] })
  openDialog(
    <Action
      title={`Resume ${id}`}
      says="This server works on the run. Finished items are not repeated."
      verb="Resume"
      unsigned
      preview={async () => resumeText(await explainResume(id))}
      fields={<Field label="Also run this work item again (optional)" value={force} />}
      cli={() => {
        const item = force.value.trim()
        return `pawl run resume ${shellWord(id)}${item === '' ? '' : ` --force=${shellWord(item)}`}`
      }}
      act={async () => {
        await call('resumeRun', { params: { id }, body: body() })
        then()
        return <span>The run is resumed.</span>
      }}
    />,
  )
}

/** The most work items that one request forces. */
export const FORCED_MAX = 1000

/**
 * Work items that ran after a moment of the past. If a resume forces them, the engine rewinds the
 * run to the last stable state before the first of them.
 */
export function itemsSince(now: Run, then: Run): string[] {
  return Object.keys(now.work_items).filter((key) => {
    const before = entryOf(then.work_items, key)
    const isSame = before?.attempts === entryOf(now.work_items, key)?.attempts
    return !isSame || before?.status !== 'finished'
  })
}

export function askToRewind(
  id: string,
  { at, items }: { at: number; items: readonly string[] },
  then: () => void,
): void {
  const forced = items.map((key) => ` --force=${shellWord(key)}`).join('')
  openDialog(
    <Action
      title={`Rewind ${id} to event ${at}`}
      says={`${counted(items.length, 'work item')} ran after event ${at}. The run goes back to the
        last stable state before the first of them, and they run again. Its log keeps what has
        happened. To keep this run as it is, fork it instead.`}
      verb="Rewind and resume"
      unsigned
      cli={() => `pawl run resume ${shellWord(id)}${forced}`}
      act={async () => {
        await call('resumeRun', { params: { id }, body: { force: [...items] } })
        then()
        return <span>The run is rewound and resumed.</span>
      }}
    />,
  )
}

export function askToCancel(id: string, then: () => void): void {
  openDialog(
    <Action
      title={`Cancel ${id}`}
      says="A process that works on the run stops. A cancelled run cannot be resumed, only forked."
      verb="Cancel the run"
      cli={({ reason }) => `pawl run cancel ${shellWord(id)} --reason=${shellWord(reason)}`}
      act={async (signed) => {
        const { answer } = await call('cancelRun', { params: { id }, body: signed })
        then()
        return <span>{answer === 'cancelled' ? 'Cancelled.' : 'Its process was asked.'}</span>
      }}
    />,
  )
}

export function askToFork(id: string, at: number): void {
  const name = signal('')
  const runId = () => name.value.trim()
  openDialog(
    <Action
      title={`Fork ${id} after event ${at}`}
      says="A new run begins with the events of this one up to there. This run does not change."
      verb="Fork"
      unsigned
      fields={<Field label="Id of the new run" value={name} placeholder="generated" />}
      cli={() => {
        const own = runId() === '' ? '' : ` --id=${shellWord(runId())}`
        return `pawl run fork ${shellWord(id)} --at ${at}${own}`
      }}
      act={async () => {
        const body = { at, ...(runId() !== '' && { runId: runId() }) }
        const made = await call('forkRun', { params: { id }, body })
        return (
          <span>
            Forked. <a href={runHref(made.runId)}>Open the new run</a>
          </span>
        )
      }}
    />,
  )
}

export function askToLink(id: string, then: () => void): void {
  const commit = signal('')
  openDialog(
    <Action
      title={`Link a commit to ${id}`}
      says="The log of the run records the commit."
      verb="Link"
      unsigned
      fields={<Field label="Full hash of the commit" value={commit} />}
      isReady={() => /^[0-9a-f]{40,64}$/.test(commit.value.trim())}
      cli={() => `pawl run link ${shellWord(id)} ${shellWord(commit.value.trim() || '…')}`}
      act={async () => {
        await call('linkCommit', { params: { id }, body: { commit: commit.value.trim() } })
        then()
        return <span>Linked.</span>
      }}
    />,
  )
}

export function askToStart(definitions: Definitions, then: () => void): void {
  const name = signal(definitions[0]?.name ?? '')
  const input = signal('null')
  const runId = signal('')
  openDialog(
    <Action
      title="Start a run"
      says="This server works on the run."
      verb="Start"
      unsigned
      fields={
        <>
          <label class="labelled">
            <span>Definition</span>
            <select
              class="field"
              value={name.value}
              onChange={(event) => {
                name.value = event.currentTarget.value
              }}
            >
              {definitions.map((one) => (
                <option key={one.name}>{one.name}</option>
              ))}
            </select>
          </label>
          <Field label="Input as JSON" value={input} />
          <Field label="Id" value={runId} placeholder="generated" />
        </>
      }
      cli={() => {
        const own = runId.value.trim() === '' ? '' : ` --id=${shellWord(runId.value.trim())}`
        return `pawl run start ${shellWord(name.value)} ${shellWord(input.value)}${own}`
      }}
      act={async () => {
        const id = runId.value.trim()
        const body = { definition: name.value, input: jsonOf(input.value) }
        const made = await call('startRun', { body: { ...body, ...(id !== '' && { runId: id }) } })
        then()
        return (
          <span>
            Started. <a href={runHref(made.runId)}>Open the run</a>
          </span>
        )
      }}
    />,
  )
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Refused(400, {
      title: 'The input is not JSON',
      code: 'INPUT',
      hint: 'Write for example {"folder": "docs"}.',
    })
  }
}
