/** What operators do to flows: cancel and redrive. */
import { type Answer, call } from '../api/client.ts'
import type { Flow } from '../api/operations.ts'
import { askControl } from '../controls/act.tsx'
import { count, counted } from '../format.ts'

type Verb = 'cancel' | 'redrive'
type Report = Answer<'cancelFlow'>

const TITLES: Readonly<Record<Verb, string>> = { cancel: 'Cancel', redrive: 'Redrive' }

const SAYS: Readonly<Record<Verb, string>> = {
  cancel: 'All jobs that have not ended are cancelled. Running handlers are aborted.',
  redrive:
    'Failed and parked jobs run again with fresh budgets. Jobs that wait for them go on when ' +
    'they have succeeded.',
}

function previewOf({ matched, done, asked, refused, same, refusals }: Report): string {
  if (matched === 0) return 'There is no job that it would change.'
  const rest = [
    asked > 0 && `${counted(asked, 'worker')} would be asked to stop`,
    same > 0 && `${count(same)} need no change`,
    refused > 0 && `${count(refused)} cannot: ${refusals[0]?.hint || refusals[0]?.message}`,
  ].filter(Boolean)
  const all = `${counted(done + asked, 'job')} would change`
  return `${[all, ...rest].join('; ')}.`
}

/** Opens the dialog. */
export function askForFlow(verb: Verb, { id, kind }: Flow, then: () => void): void {
  const title = TITLES[verb]
  const send = (body: { reason: string; operator?: string; dryRun?: boolean }) =>
    call(verb === 'cancel' ? 'cancelFlow' : 'redriveFlow', { params: { id }, body })
  askControl({
    command: `pawl flow ${verb}`,
    object: id,
    title: `${title} this ${kind}`,
    verb: title,
    says: SAYS[verb],
    preview: async () => previewOf(await send({ reason: 'preview', dryRun: true })),
    act: async (signed) => {
      const { done, asked, refused, refusals } = await send(signed)
      const why = refused > 0 ? `, ${count(refused)} refused (${refusals[0]?.message})` : ''
      return (
        <span>
          {title}: {counted(done + asked, 'job')}
          {why}.
        </span>
      )
    },
    then,
  })
}
