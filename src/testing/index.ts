/** The test kit: Pawl under a clock that the test owns. */
export { CRASH_POINTS, type CrashPoint } from './crash-points.ts'
export type { Drained, DrainedAttempt } from './drained.ts'
export * from './errors.ts'
export { type Given, givenJob, givenRun, type Then } from './given.ts'
export { JobScript, type JobScriptOptions, type ScriptAsker } from './job-script.ts'
export { ManualClock } from './manual-clock.ts'
export {
  type RunJobOptions,
  type RunJobOutcome,
  type RunJobStep,
  type RunJobTraces,
  runJob,
} from './run-job.ts'
export { RunScript } from './run-script.ts'
export { SeededRandom } from './seeded-random.ts'
export { SequentialIds } from './sequential-ids.ts'
export { type FileCrash, type FileFailure, SimulatedFiles } from './simulated-files.ts'
export {
  type TestEnvironment,
  type TestEnvironmentOptions,
  testEnvironment,
} from './test-environment.ts'
export {
  createTestPawl,
  type DrainOptions,
  TestPawl,
  type TestPawlOptions,
} from './test-pawl.ts'
