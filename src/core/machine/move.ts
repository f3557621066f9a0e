/**
 * A move has one of three results: an edge; the same state, if the machine allows it as a no-op; or
 * an error that lists the allowed states.
 */
import { InvalidTransition } from '../errors.ts'
import type { EdgeSpec, Machine } from './define.ts'

/** The target: a state, or the state that a trigger leads to. */
export type MoveRequest<S extends string, T extends string> =
  | { readonly to: S }
  | { readonly on: T }

export type Move<S extends string, T extends string> =
  | { readonly kind: 'edge'; readonly edge: EdgeSpec<S, T> }
  | { readonly kind: 'same'; readonly state: S }
  | { readonly kind: 'invalid'; readonly error: InvalidTransition }

/** Looks up the result of a move. Changes nothing. */
export function move<S extends string, T extends string>(
  machine: Machine<S, T>,
  from: NoInfer<S>,
  request: MoveRequest<NoInfer<S>, NoInfer<T>>,
): Move<S, T> {
  const edge =
    'to' in request
      ? machine.byTarget.get(from)?.get(request.to)
      : machine.byTrigger.get(from)?.get(request.on)
  if (edge !== undefined) return { kind: 'edge', edge }

  const same = 'to' in request && request.to === from && machine.states.has(from)
  if (same && machine.sameState === 'noop') return { kind: 'same', state: from }

  const [to, trigger] = 'to' in request ? [request.to] : [`(${request.on})`, request.on]
  const allowed = allowedFrom(machine, from)
  return { kind: 'invalid', error: new InvalidTransition(machine.name, from, to, allowed, trigger) }
}

/** Returns the states that edges lead to; empty for an unknown state. */
export function allowedFrom<S extends string>(machine: Machine<S>, from: NoInfer<S>): S[] {
  return [...(machine.byTarget.get(from)?.keys() ?? [])]
}
