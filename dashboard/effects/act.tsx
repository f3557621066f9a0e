/** The dialog that delivers effects again: chosen ones, or all that match a filter. */
import { shellWord } from '../../src/doctor/shell-word.ts'
import { type Answer, call } from '../api/client.ts'
import { count, counted } from '../format.ts'
import { Action, openDialog, type Signed } from '../ui/dialogs.tsx'

export type EffectFilter = Readonly<Record<string, string>>

/** The effects that a command is about. */
export type EffectSelection =
  | { readonly keys: readonly string[] }
  | { readonly filter: EffectFilter; readonly limit: number }

type Report = Answer<'retryEffects'>

const OPTIONS: Readonly<Record<string, string>> = { jobId: 'job' }

/** The conditions as options of a command. */
export function effectWords(filter: EffectFilter): string[] {
  return Object.entries(filter).map(
    ([name, value]) => `--${OPTIONS[name] ?? name}=${shellWord(value)}`,
  )
}

function lineOf(selection: EffectSelection, { reason, operator }: Signed): string {
  const what =
    'keys' in selection
      ? selection.keys.map(shellWord)
      : [...effectWords(selection.filter), `--limit ${selection.limit}`]
  const why = reason === '…' ? '--reason …' : `--reason=${shellWord(reason)}`
  const who = operator === undefined ? [] : [`--operator=${shellWord(operator)}`]
  return ['pawl effect retry', ...what, why, ...who].join(' ')
}

async function retry(selection: EffectSelection, body: Signed & { dryRun?: boolean }) {
  return (await call('retryEffects', { body: { ...body, ...selection } } as never)) as Report
}

function previewOf({ matched, done, same, refused, refusals, more }: Report): string {
  const rest = [
    same > 0 && `${count(same)} need no change`,
    refused > 0 && `${count(refused)} cannot: ${refusals[0]?.hint || refusals[0]?.message}`,
    more && 'and there are more than one request changes',
  ].filter(Boolean)
  const end = rest.length > 0 ? `; ${rest.join('; ')}` : ''
  return `${counted(done, 'effect')} of ${count(matched)} would be due now${end}.`
}

/** Opens the dialog. `then` is called after the command. */
export function askToDeliver(selection: EffectSelection, then: () => void): void {
  const what = 'keys' in selection ? counted(selection.keys.length, 'effect') : 'matching effects'
  openDialog(
    <Action
      title={`Deliver ${what} again`}
      says="Only the delivery is repeated: the jobs are already committed."
      verb="Deliver again"
      cli={(signed) => lineOf(selection, signed)}
      preview={async () => previewOf(await retry(selection, { reason: 'preview', dryRun: true }))}
      act={async (signed) => {
        const { done, refused, refusals } = await retry(selection, signed)
        then()
        const not = refused > 0 ? `, ${count(refused)} refused (${refusals[0]?.message})` : ''
        return <span>{`Due now: ${counted(done, 'effect')}${not}.`}</span>
      }}
    />,
  )
}
