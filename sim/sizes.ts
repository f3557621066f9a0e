/** How large seeds are, and how long things may take in them. */

/** When every seed begins. */
export const START = Date.UTC(2026, 0, 1)
/** Most seeds are small, for many histories find more than long ones; one in ten is not. */
export const SMALL = { workers: 2, jobs: [2, 5], faultyMs: 10_000 } as const
/** The others. */
export const LARGE = { workers: 3, jobs: [6, 14], faultyMs: 40_000 } as const
/** Seeds with limits: enough jobs that some have to wait for others. */
export const LIMITED = { workers: 2, jobs: [5, 10], faultyMs: 12_000 } as const
/** How many seeds are large. */
export const LARGE_SHARE = 0.1
/** How many seeds also play a run, on files of its own. */
export const RUN_SHARE = 0.4
/** In one seed of so many, schedules are played as well. */
export const SCHEDULES_EVERY = 8
/** In one seed of so many, groups are played as well; not in those with schedules. */
export const GROUPS_EVERY = 8
/** In one seed of so many, sleeps and signals are played as well; in none of the others. */
export const WAITS_EVERY = 8
/** In one seed of so many, flows are played as well; in none of the others. */
export const FLOWS_EVERY = 8
/** Clocks may have been wrong by minutes, and leases and due times with them. */
export const HEALED_MS = 45 * 60_000
/** How long workers may take to stop. */
export const STOP_MS = 5 * 60_000
/** Far more than any seed needs; a loop that does nothing is told by it. */
export const STEPS_MAX = 200_000
/** After the faults, until everybody has noticed that they are over. */
export const GRACE_MS = 12_000
/** How often workers look for expired leases. */
export const RECOVER_MS = 3000
