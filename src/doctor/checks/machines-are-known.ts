import type { StoreCheck } from './check.ts'

/** Compares the stored lifecycles with those of this process. */
export const machinesAreKnown: StoreCheck = {
  name: 'machines-are-known',
  promise: 'P2',
  says: 'The stored number and definition of each lifecycle of this program can be used.',
  look: async ({ store }) => {
    const faults = await store.examination.machineFaults()
    return faults.map(({ lifecycle: { name, version }, what, row, number }) => ({
      promise: 'P2',
      severity: 'error',
      subject: `lifecycle ${name} v${version}`,
      what,
      evidence: { row, number },
      remedy: 'restore the lifecycle',
    }))
  },
}
