import type { StoreCheck } from './check.ts'

/** Under which name it is kept that an operator knows of rows that are gone. */
const VANISHED = 'vanished'

/** A job that was deleted together with its ledger leaves no row; but numbers are never reused. */
export const nothingVanished: StoreCheck = {
  name: 'nothing-vanished',
  promise: 'P1',
  says: 'Every job and every fact that ever was is there, or retention says that it removed it.',
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
        what: `${gone.jobs} jobs and ${gone.facts} facts are gone, and no record tells of it`,
        evidence: { origin: VANISHED, state },
        ...(!isKnown && { remedy: 'note what is wrong and go on' }),
        advice: 'Look for them in a backup; make seals (pawl audit seal) to learn where next time.',
      },
    ]
  },
}
