/**
 * `pawl/config`: for `pawl.config.ts` and its other forms, the configuration of the program `pawl`.
 */
export type { Duration } from '../core/durations.ts'
export {
  defineConfig,
  type PawlConfig,
  type ServeConfig,
  type WorkConfig,
} from '../engine/config.ts'
export type { KeepOptions, RetentionOptions } from '../engine/retention/options.ts'
