/**
 * The rules for a sound machine. All problems are reported together, so that a definition can be
 * corrected in one pass. Names are restricted here, so that no renderer has to escape them.
 */
import { reachableFrom } from './analyse.ts'
import type { EdgeSpec, MachineSpec } from './define.ts'

const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/
const STATES_MAX = 256
const EDGES_MAX = 4096

/** Returns all reasons why the definition is not a sound machine. */
export function findProblems(spec: MachineSpec): string[] {
  const shape = [...shapeProblems(spec), ...edgeProblems(spec)]
  // Reachability is undefined while edges name undeclared states.
  return shape.length > 0 ? shape : [...graphProblems(spec), ...triggerProblems(spec)]
}

function shapeProblems(spec: MachineSpec): string[] {
  const problems: string[] = []
  const states = Object.keys(spec.states)
  if (!NAME.test(spec.name)) problems.push(`the name "${spec.name}" is not a plain word`)
  if (!Number.isSafeInteger(spec.version) || spec.version < 1) {
    problems.push('the version is not a whole number of at least 1')
  }
  if (states.length === 0) problems.push('it has no states')
  if (states.length > STATES_MAX) problems.push(`it has more than ${STATES_MAX} states`)
  if (spec.edges.length > EDGES_MAX) problems.push(`it has more than ${EDGES_MAX} edges`)
  for (const state of states) {
    if (!NAME.test(state)) problems.push(`the state name "${state}" is not a plain word`)
  }
  if (states.length > 0 && !states.includes(spec.initial)) {
    problems.push(`the initial state "${spec.initial}" is not declared`)
  }
  return problems
}

function edgeProblems(spec: MachineSpec): string[] {
  const problems: string[] = []
  const seen = new Set<string>()
  for (const edge of spec.edges) {
    const label = `${edge.from} → ${edge.to}`
    for (const state of [edge.from, edge.to]) {
      if (!Object.hasOwn(spec.states, state)) {
        problems.push(`${label} names the undeclared state "${state}"`)
      }
    }
    if (edge.from === edge.to) problems.push(`${label} is a self-edge: use sameState instead`)
    if (seen.has(label)) problems.push(`${label} is declared twice`)
    seen.add(label)
    if (edge.on.length === 0) problems.push(`${label} has no trigger`)
    for (const trigger of edge.on) {
      if (!NAME.test(trigger)) problems.push(`the trigger "${trigger}" is not a plain word`)
    }
    if (edge.because === '') problems.push(`${label} was added without a reason`)
  }
  return problems
}

function graphProblems(spec: MachineSpec): string[] {
  const problems: string[] = []
  const reachable = reachableFrom(spec.edges, spec.initial)
  for (const [state, { terminal }] of Object.entries(spec.states)) {
    if (!reachable.has(state)) problems.push(`${state} cannot be reached`)
    const out = spec.edges.filter((edge) => edge.from === state)
    if (!terminal && out.length === 0) {
      problems.push(`${state} is not terminal, but no edge leaves it`)
    }
    if (terminal) problems.push(...out.filter((edge) => !edge.operator).map(leavesTerminal))
  }
  return problems
}

function leavesTerminal(edge: EdgeSpec): string {
  return `${edge.from} → ${edge.to} leaves a terminal state and is not an operator edge`
}

function triggerProblems(spec: MachineSpec): string[] {
  const problems: string[] = []
  const targets = new Map<string, string>()
  for (const edge of spec.edges) {
    for (const trigger of edge.on) {
      const key = `${edge.from} on ${trigger}`
      const other = targets.get(key)
      if (other !== undefined) problems.push(`${key} leads to both ${other} and ${edge.to}`)
      targets.set(key, edge.to)
    }
  }
  return problems
}
