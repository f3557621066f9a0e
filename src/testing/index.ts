/** The test kit: jobs and runs played in memory, under a clock that the test owns. */
export * from './job-script.ts'
export * from './manual-clock.ts'
export * from './run-script.ts'
export * from './seeded-random.ts'
export * from './sequential-ids.ts'
export * from './store-contract/index.ts'
export * from './test-environment.ts'
