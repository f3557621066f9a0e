/** The doctor: every promise with its last result, findings, what a repair would do, and apply. */
import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { shellWord } from '../../src/doctor/shell-word.ts'
import { type Answer, call, type Refused } from '../api/client.ts'
import type { Examination } from '../api/operations.ts'
import { isAdmin, now } from '../api/session.ts'
import { BY_TESTS, PROMISES } from '../doctor/promises.ts'
import { count, counted } from '../format.ts'
import { setBadge } from '../numbers.ts'
import { Action, openDialog } from '../ui/dialogs.tsx'
import { Cli, Empty, Failure, Name, Panel, Time, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'

interface Result {
  readonly examination: Examination
  readonly at: number
  readonly isPlan: boolean
}

/** The last result stays while the person looks at other pages. */
const last = signal<Result | undefined>(undefined)

function note(examination: Examination, isPlan: boolean): void {
  last.value = { examination, at: now.value, isPlan }
  const { ok, findings } = examination
  setBadge('/doctor', { text: ok ? 'healthy' : count(findings.length), isHot: !ok })
}

type Kind = 'check' | 'full' | 'plan'

export function DoctorPage() {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Refused>()
  const run = async (kind: Kind) => {
    setBusy(true)
    setError(undefined)
    try {
      const examination: Examination =
        kind === 'plan'
          ? await call('planRepair', { body: {} })
          : await call('checkStore', { body: { full: kind === 'full' } })
      note(examination, kind === 'plan')
    } catch (failed) {
      setError(failed as Refused)
    }
    setBusy(false)
  }
  const result = last.value
  return (
    <>
      <Top title="Doctor" actions={<Buttons busy={busy} run={run} result={result} />}>
        {result && <Verdict result={result} />}
      </Top>
      <div class="stack">
        <Failure error={error} />
        {busy && <p class="muted">The doctor looks at the store…</p>}
        {result === undefined ? <NotYet /> : <Found result={result} />}
        <Promises result={result} />
      </div>
    </>
  )
}

function Buttons({
  busy,
  run,
  result,
}: {
  busy: boolean
  run: (kind: Kind) => Promise<void>
  result: Result | undefined
}) {
  const button = (kind: Kind, title: string) => (
    <button type="button" class="button" disabled={busy} onClick={() => void run(kind)}>
      {title}
    </button>
  )
  const repairs = result?.isPlan ? result.examination.repairCount : 0
  return (
    <>
      {button('check', 'Check')}
      {button('full', 'Check everything')}
      {button('plan', 'Plan a repair')}
      {isAdmin.value && repairs > 0 && (
        <button type="button" class="button primary" onClick={() => askToRepair(repairs)}>
          Apply {counted(repairs, 'repair')}…
        </button>
      )}
    </>
  )
}

function askToRepair(repairs: number): void {
  openDialog(
    <Action
      title={`Apply ${counted(repairs, 'repair')}`}
      says="The doctor checks again, repairs what it finds then, and keeps what it replaces."
      verb="Apply"
      cli={({ reason, operator }) => {
        const who = operator === undefined ? '' : ` --operator=${shellWord(operator)}`
        return `pawl doctor --full --apply --reason=${shellWord(reason)}${who}`
      }}
      act={async (signed) => {
        const { repaired, after }: Answer<'repairStore'> = await call('repairStore', {
          body: signed,
        })
        note(after, false)
        return (
          <span>
            {counted(repaired.repairCount, 'repair')} applied.{' '}
            {after.ok
              ? 'The store is healthy.'
              : `${counted(after.findings.length, 'finding')} left.`}
          </span>
        )
      }}
    />,
  )
}

function Verdict({ result: { examination, at } }: { result: Result }) {
  const { jobs, complete } = examination
  return (
    <>
      <Health examination={examination} />
      <span class="muted small">
        {count(jobs)} jobs checked{complete ? '' : ' of more'}, <Time at={at} />
      </span>
    </>
  )
}

/** Only errors are damage; a warning is about what may go wrong. */
function Health({ examination: { errors, warnings } }: { examination: Examination }) {
  if (errors > 0) return <State tone="failed" word="damaged" />
  if (warnings > 0) return <State tone="retrying" word={counted(warnings, 'warning')} />
  return <State tone="succeeded" word="healthy" />
}

function NotYet() {
  return (
    <Panel>
      <Empty title="Not checked yet" line="pawl doctor --full">
        The doctor compares every job with its facts and every promise with what is stored. A check
        takes two seconds at most; checking everything takes as long as the store is large. Nothing
        is changed.
      </Empty>
    </Panel>
  )
}

type Finding = Examination['findings'][number]

const TONES = { error: 'failed', warning: 'retrying', notice: 'waiting' } as const

function Found({ result: { examination, isPlan } }: { result: Result }) {
  const { findings, repairs, errors, warnings, notices } = examination
  const words = { error: errors, warning: warnings, notice: notices }
  const sums = Object.entries(words).map(([word, number]) => counted(number, word))
  return (
    <>
      <Panel title={`Findings: ${sums.join(', ')}`} flush>
        {findings.length === 0 ? (
          <Empty title="Every promise holds" />
        ) : (
          <Findings findings={findings} />
        )}
      </Panel>
      {repairs.length > 0 && (
        <Panel title={isPlan ? 'What a repair would do' : 'What can be repaired'} flush>
          <Table
            label="Repairs"
            rows={repairs}
            keyOf={({ subject, remedy }) => `${subject} ${remedy}`}
            columns={[
              { title: 'Subject', tight: true, cell: ({ subject }) => <Name text={subject} /> },
              { title: 'Repair', tight: true, cell: ({ remedy }) => remedy },
              { title: 'Why', prose: true, cell: ({ why }) => <Name text={why} /> },
              {
                title: 'Changes',
                cell: ({ changes }) => (
                  <span class="mono muted">{changes.map(({ column }) => column).join(', ')}</span>
                ),
              },
            ]}
          />
        </Panel>
      )}
      <Cli line={isPlan ? 'pawl doctor --full --plan' : 'pawl doctor --full'} />
    </>
  )
}

/** Every promise, with what the last check found. */
function Promises({ result }: { result: Result | undefined }) {
  const findings = result?.examination.findings ?? []
  const complete = result?.examination.complete ?? false
  return (
    <Panel title="Promises" flush>
      <Table
        label="Promises"
        rows={PROMISES}
        keyOf={([name]) => name}
        columns={[
          { title: 'Promise', tight: true, cell: ([name]) => name },
          {
            title: 'Last result',
            tight: true,
            cell: ([name]) => {
              const own = findings.filter(({ promise }) => promise === name)
              const errors = own.filter(({ severity }) => severity === 'error')
              if (errors.length > 0) return <State tone="failed" word="broken" />
              if (own.length > 0) return <State tone="retrying" word="warned" />
              if (BY_TESTS.includes(name)) return <span class="muted">by tests alone</span>
              if (result === undefined) return <State tone="idle" word="not checked" />
              return <State tone="succeeded" word={complete ? 'holds' : 'holds so far'} />
            },
          },
          { title: 'It says', prose: true, cell: ([, says]) => says },
          {
            title: 'Findings',
            number: true,
            tight: true,
            cell: ([name]) => count(findings.filter(({ promise }) => promise === name).length),
          },
        ]}
      />
    </Panel>
  )
}

function Findings({ findings }: { findings: readonly Finding[] }) {
  return (
    <Table
      label="Findings"
      rows={findings}
      keyOf={({ check, subject, what }) => `${check} ${subject} ${what}`}
      columns={[
        {
          title: 'Severity',
          tight: true,
          cell: ({ severity }) => <State tone={TONES[severity]} word={severity} />,
        },
        { title: 'Promise', tight: true, cell: ({ promise }) => promise },
        { title: 'Subject', cell: ({ subject }) => <Name text={subject} clip /> },
        {
          title: 'What',
          prose: true,
          cell: ({ what, advice }) => (
            <Name text={advice === undefined ? what : `${what}. ${advice}`} />
          ),
        },
        { title: 'Repair', tight: true, wide: true, cell: ({ remedy }) => remedy ?? '–' },
      ]}
    />
  )
}
