// The keys of the jobs whose code is in worker.mjs.
import { defineJob, typed } from 'pawl'

/** Lives through as many crashes and failures as a test makes. */
const PATIENT = { retry: { max: 1000, delay: '20ms', jitter: 0 }, crashesMax: 1000 } as const

/** Ends its first attempt when it is aborted or when it is told to, in either way of ending. */
export const outlast = defineJob({
  name: 'outlast',
  input: typed<{ after: 'abort' | 'order'; by: 'commit' | 'return' }>(),
})
/** Goes on until it is told to end, or is aborted; a stubborn one only until it is told. */
export const wait = defineJob({
  name: 'wait',
  input: typed<{ progress?: unknown; stubborn?: boolean }>(),
})
/** Stops the event loop of its process for so long. */
export const hog = defineJob({ name: 'hog', input: typed<{ ms: number }>() })
/** Takes so long, and writes a row in its commit. */
export const book = defineJob({ name: 'book', input: typed<{ ms: number }>(), ...PATIENT })
/** Kills its process. */
export const poison = defineJob({ name: 'poison', priority: -1, ...PATIENT, crashesMax: 3 })
/** Returns what it was given. */
export const echo = defineJob({ name: 'echo' })
