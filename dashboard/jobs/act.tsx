/** The dialog of an operator's command on jobs: one, chosen ones, or all that match a filter. */
import { shellWord } from '../../src/doctor/shell-word.ts'
import { type Answer, call, Refused } from '../api/client.ts'
import { count, counted } from '../format.ts'
import { hrefOf, jobHref } from '../router.ts'
import { Action, openDialog, type Signed } from '../ui/dialogs.tsx'
import type { Verb, VerbSpec } from './verbs.ts'

/** The conditions of a list of jobs, as in its address. */
export type JobFilter = Readonly<Record<string, string>>

/** The jobs that a command is about. */
export type Selection =
  | { readonly ids: readonly string[] }
  | { readonly filter: JobFilter; readonly limit: number }

export type Report = Answer<'cancelJobs'>
type Body = { readonly reason: string; readonly dryRun?: boolean; readonly operator?: string }

/** Calls a command; all commands of operators have the same form. */
async function command(verb: Verb, selection: Selection, body: Body): Promise<Report> {
  const isAll = 'filter' in selection && Object.keys(selection.filter).length === 0
  const what = isAll ? { all: true as const, limit: selection.limit } : requestOf(selection)
  return (await call(`${verb}Jobs`, { body: { ...body, ...what } } as never)) as Report
}

function requestOf(selection: Selection): object {
  if ('ids' in selection) return selection
  return { filter: toFilter(selection.filter), limit: selection.limit }
}

const TIMES: readonly string[] = ['createdFrom', 'createdBefore']

/** The conditions as the API takes them: times are numbers, and `yes` is true. */
export function toFilter(filter: JobFilter): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(filter).map(([name, value]) => [
      name,
      name === 'stalled' ? isStalled(value) : TIMES.includes(name) ? timeOf(value) : value,
    ]),
  )
}

function isStalled(value: string): true {
  if (value === 'yes') return true
  const hint = 'Write stalled:yes, or remove the condition.'
  throw new Refused(400, { title: `${value} is not a choice`, code: 'CHOICE', hint })
}

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `2h` means two hours ago; everything else is a date or milliseconds. */
export function timeOf(text: string): number {
  const [, amount, unit = ''] = /^(\d+)\s*([mhd])$/.exec(text) ?? []
  if (amount !== undefined) return Date.now() - Number(amount) * (UNITS[unit] ?? 0)
  if (/^\d{12,}$/.test(text)) return Number(text)
  const time = Date.parse(text)
  if (Number.isNaN(time)) {
    const hint = 'Write a date such as 2026-11-18, or a time ago such as 2h.'
    throw new Refused(400, { title: `${text} is not a time`, code: 'TIME', hint })
  }
  return time
}

const OPTION: Readonly<Record<string, string>> = {
  createdFrom: 'created-after',
  createdBefore: 'created-before',
}

/** The same as a command line. */
function lineOf(verb: string, selection: Selection, signed: Signed): string {
  const who = signed.operator === undefined ? '' : ` --operator=${shellWord(signed.operator)}`
  const why = signed.reason === '…' ? '--reason …' : `--reason=${shellWord(signed.reason)}`
  return `pawl job ${verb} ${wordsOf(selection)} ${why}${who}`
}

/** The conditions as options of a command. */
export function conditionWords(filter: JobFilter): string[] {
  return Object.entries(filter).map(([name, value]) => {
    return name === 'stalled' ? '--stalled' : `--${OPTION[name] ?? name}=${shellWord(value)}`
  })
}

function wordsOf(selection: Selection): string {
  if ('ids' in selection) return selection.ids.map(shellWord).join(' ')
  const conditions = conditionWords(selection.filter)
  return `${conditions.length === 0 ? '--all' : conditions.join(' ')} --limit ${selection.limit}`
}

function previewOf({ matched, done, asked, refused, same, refusals, more }: Report) {
  const rest = [
    asked > 0 && `${counted(asked, 'worker')} would be asked to stop`,
    same > 0 && `${count(same)} need no change`,
    refused > 0 && `${count(refused)} cannot: ${refusals[0]?.hint || refusals[0]?.message}`,
    more && 'and there are more than one request changes',
  ].filter(Boolean)
  return (
    <>
      <b>{counted(done + asked, 'job')}</b> of {count(matched)} would change
      {rest.length > 0 && `; ${rest.join('; ')}`}.
    </>
  )
}

function outcomeOf(title: string, { done, asked, refused, refusals, copies }: Report) {
  const [copy] = copies
  const [first] = refusals
  return (
    <span>
      {title}: {counted(done + asked, 'job')}
      {refused > 0 && `, ${count(refused)} refused (${first?.message})`}.{' '}
      {copy && <a href={copies.length === 1 ? jobHref(copy.id) : hrefOf('/jobs')}>Open the copy</a>}
    </span>
  )
}

/** Opens the dialog. `then` is called after the command. */
export function askFor(
  { verb, title, says }: VerbSpec,
  selection: Selection,
  then: (report: Report) => void,
): void {
  const isOne = 'ids' in selection && selection.ids.length === 1
  const what = isOne
    ? 'this job'
    : 'ids' in selection
      ? counted(selection.ids.length, 'job')
      : 'the matching jobs'
  const act = async (signed: Signed) => {
    const report = await command(verb, selection, signed)
    if (isOne && report.refused > 0) throw refusalOf(report)
    then(report)
    return outcomeOf(title, report)
  }
  openDialog(
    <Action
      title={`${title} ${what}`}
      says={says}
      verb={title}
      cli={(signed) => lineOf(verb, selection, signed)}
      preview={async () =>
        previewOf(await command(verb, selection, { reason: 'preview', dryRun: true }))
      }
      act={act}
    />,
  )
}

function refusalOf({ refusals: [first] }: Report): Refused {
  const { message = 'The server refused it', hint = '', code = '' } = first ?? {}
  return new Refused(409, { title: message, hint, code })
}
