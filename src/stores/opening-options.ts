/** Checks of the options that every store has. */
import { listOf, oneOf, record } from '../core/checks.ts'
import { type FieldChecks, unchecked } from '../core/fields.ts'
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Environment } from '../environment/system.ts'
import type { PayloadOptions } from './contract/requests.ts'
import type { SoundnessOptions } from './soundness.ts'

interface OpeningOptions extends PayloadOptions, SoundnessOptions {
  readonly lifecycles?: readonly Lifecycle[]
  readonly environment?: Environment
}

const LIFECYCLES_MAX = 10_000

/** `payloadBoundsOf` checks the bounds of payloads. */
export const OPENING_CHECKS: FieldChecks<OpeningOptions> = {
  lifecycles: (value) => listOf(value, LIFECYCLES_MAX, record),
  environment: record,
  logger: record,
  onFindings: (value) => oneOf(value, ['block', 'warn']),
  payloadBytesMax: unchecked,
  payloadDepthMax: unchecked,
}
