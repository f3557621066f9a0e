/** Exit codes of commands; `src/engine/error-classes.ts` lists the errors of each class. */
import type { PawlError } from '../core/errors.ts'
import { type ErrorClass, errorClassOf } from '../engine/error-classes.ts'

export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  findings: 3,
  notFound: 4,
  conflict: 5,
  interrupted: 130,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

const BY_CLASS: Readonly<Record<ErrorClass, ExitCode>> = {
  usage: EXIT.usage,
  'not-found': EXIT.notFound,
  conflict: EXIT.conflict,
  failure: EXIT.failure,
}

export function exitCodeOf(error: Pick<PawlError, 'code'>): ExitCode {
  return BY_CLASS[errorClassOf(error)]
}
