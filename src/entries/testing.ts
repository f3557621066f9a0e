/** `pawl/testing`: for tests. Runs jobs and runs with a manual clock, random numbers and ids. */
export type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
export type {
  Clock,
  FileHandle,
  FileInfo,
  FileLock,
  FileLocks,
  FileMode,
  FileSystem,
  FolderHandle,
  HostTime,
  IdSource,
  Random,
  Timer,
  Timers,
} from '../core/ports.ts'
export type { RunMachine } from '../core/run/machine.ts'
export type { JobDefinition } from '../engine/define-job.ts'
export type { AnyValue, JobKey } from '../engine/job-types.ts'
export { CRASH_POINTS, type CrashPoint } from '../testing/crash-points.ts'
export type { Drained, DrainedAttempt, DrainFailure } from '../testing/drained.ts'
export * from '../testing/errors.ts'
export { type Given, givenJob, givenRun, type Then } from '../testing/given.ts'
export type { GivenOutcome, RunJobChildren, RunJobInvoked } from '../testing/given-jobs.ts'
export { JobScript, type JobScriptOptions, type ScriptRequester } from '../testing/job-script.ts'
export { ManualClock } from '../testing/manual-clock.ts'
export {
  type RunJobEnqueued,
  type RunJobOptions,
  type RunJobOutcome,
  type RunJobSignal,
  type RunJobStep,
  type RunJobTraces,
  runJob,
} from '../testing/run-job.ts'
export { RunScript } from '../testing/run-script.ts'
export { SeededRandom } from '../testing/seeded-random.ts'
export { SequentialIds } from '../testing/sequential-ids.ts'
export { type FileCrash, type FileFailure, SimulatedFiles } from '../testing/simulated-files.ts'
export {
  type TestEnvironment,
  type TestEnvironmentOptions,
  testEnvironment,
} from '../testing/test-environment.ts'
export {
  createTestPawl,
  type DrainOptions,
  TestPawl,
  type TestPawlOptions,
} from '../testing/test-pawl.ts'
