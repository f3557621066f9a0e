import type { StoreCheck } from './check.ts'

/** The name under which the store notes that an operator has acknowledged the loss. */
const VANISHED = 'vanished'

/** Row numbers are never reused, so gaps show jobs that were deleted with all their facts. */
export const nothingVanished: StoreCheck = {
  name: 'nothing-vanished',
  promise: 'P1',
  says: 'No job and no fact is missing, except those that retention has recorded.',
  look: async ({ store }) => {
    const gone = await store.examination.vanished()
    if (gone === undefined || (gone.jobs === 0 && gone.facts === 0)) return []
    const state = JSON.stringify(gone)
    const isKnown = (await store.examination.notes(VANISHED)).includes(state)
    return [
      {
        promise: 'P1',
        severity: isKnown ? 'notice' : 'error',
        subject: 'the store',
        what: `${gone.jobs} jobs and ${gone.facts} facts are missing without a record`,
        evidence: { origin: VANISHED, state },
        ...(!isKnown && { remedy: 'note what is wrong and go on' }),
        advice:
          'Look for them in a backup. Make seals (pawl audit seal) to see the position next time.',
      },
    ]
  },
}
