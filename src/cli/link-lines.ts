/** What connects a job with others, as lines of `pawl job show`. */
import type { Job } from '../core/job/job.ts'
import type { JobLinks } from '../http/links.ts'
import type { AfterEnds } from '../stores/contract/flows.ts'
import { visible } from './visible.ts'

const SHOWN = 5

export function linkLines(links: JobLinks | undefined): [string, string | undefined][] {
  if (links === undefined) return []
  const { flow, parent, after, waitsFor, awaitedBy, children } = links
  return [
    ['flow', flow === null ? undefined : `${flow.id}  (pawl flow show ${flow.id})`],
    ['parent', parent === null ? undefined : jobText(parent)],
    ['after', after.length === 0 ? undefined : after.map(groupText).join('; ')],
    ['open', listOf(waitsFor)],
    ['awaited by', listOf(awaitedBy)],
    [
      'children',
      children.length === 0
        ? undefined
        : `${listOf(children.map(({ job }) => job))}  (pawl job list --flow ${jobOf(children)})`,
    ],
  ]
}

function jobOf(children: JobLinks['children']): string {
  return visible(children[0]?.job.flow ?? '')
}

function jobText({ id, type, state, blockedReason }: Job): string {
  const why = blockedReason === null ? '' : `: ${visible(blockedReason)}`
  return `${visible(type)} ${id} ${visible(state)}${why}`
}

function listOf(jobs: readonly Job[]): string | undefined {
  if (jobs.length === 0) return undefined
  const more = jobs.length > SHOWN ? [`and ${jobs.length - SHOWN} or more`] : []
  return [...jobs.slice(0, SHOWN).map(jobText), ...more].join(', ')
}

/** `pages: 3 succeeded, 1 open`. */
function groupText({ name, ends }: AfterEnds): string {
  const counts = new Map<string, number>()
  for (const { outcome } of ends) {
    const word = outcome ?? 'open'
    counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  const says = [...counts].map(([word, count]) => `${count} ${word}`).join(', ')
  return `${visible(name)}: ${says === '' ? 'no jobs' : says}`
}
