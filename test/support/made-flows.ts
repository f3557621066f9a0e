/** Flows and batches for tests of what shows them, made through the store. */
import { defineJob, type Pawl } from 'pawl'
import type { AfterGroup, Need, OnFailure } from '../../src/core/job/links.ts'
import { itemBy } from '../../src/engine/enqueueing.ts'
import type { AnyJob } from '../../src/engine/job-types.ts'
import type { FlowKind } from '../../src/stores/contract/flows.ts'

interface Node {
  readonly job: AnyJob
  readonly input?: unknown
  readonly after?: readonly AfterGroup[]
  readonly onFailure?: OnFailure
}

interface Made {
  readonly id: string
  /** The ids of its jobs, by number. */
  readonly jobs: readonly string[]
}

/** A group of dependencies. */
export function group(
  name: string,
  of: AfterGroup['of'],
  { need = 'success', list = true }: { need?: Need; list?: boolean } = {},
): AfterGroup {
  return { name, of, need, list }
}

/** Creates a flow or a batch; throws if it is refused. */
export async function makeFlow(
  pawl: Pawl,
  nodes: readonly Node[],
  options: { readonly kind?: FlowKind; readonly key?: string; readonly open?: boolean } = {},
): Promise<Made> {
  const { kind = 'flow', ...more } = options
  const items = []
  for (const { job, input = null, after, onFailure } of nodes) {
    items.push({
      item: await itemBy(pawl.internals, job, { input }),
      ...(after !== undefined && { after }),
      ...(onFailure !== undefined && { onFailure }),
    })
  }
  const id = pawl.internals.environment.ids.next()
  const made = await pawl.store.flows.create({ id, kind, nodes: items, ...more })
  if (made.kind !== 'created') throw made.kind === 'rejected' ? made.error : new Error('existing')
  return { id, jobs: made.jobs.map((job) => job.id) }
}

/** Job types of which one fails until `repair` is called. */
export function reporting() {
  let isBroken = true
  const render = defineJob({ name: 'render', run: async () => ({ page: 1 }) })
  const invoice = defineJob({
    name: 'invoice',
    retry: { max: 0 },
    run: async () => {
      if (isBroken) throw new Error('no route to the bank')
      return { invoiced: true }
    },
  })
  const report = defineJob({ name: 'report', run: async () => ({ written: true }) })
  const nodes = [
    { job: render },
    { job: render },
    { job: invoice },
    {
      job: report,
      after: [group('pages', [[0, 1]]), group('bill', [2], { list: false })],
    },
  ]
  return {
    jobs: [render, invoice, report],
    render,
    invoice,
    report,
    /** Two pages and an invoice, then a report. */
    nodes,
    repair: () => {
      isBroken = false
    },
  }
}
