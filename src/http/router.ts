/** Finds the route of a request. Names in a path are percent-encoded, also `/`. */
import { text } from '../core/checks.ts'
import { RequestRefused } from './errors.ts'
import type { Route } from './route.ts'

interface Branch {
  readonly fixed: Map<string, Branch>
  variable?: Branch
  readonly routes: Map<string, Route>
}

/** A route, and the parameters of its path. */
export interface Match {
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
}

const PARAMETER_MAX = 2000

export class Router {
  readonly #root = newBranch()

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      let branch = this.#root
      for (const segment of segmentsOf(route.path)) branch = next(branch, segment)
      if (branch.routes.has(route.method)) throw new Error(`Two routes: ${route.path}`)
      branch.routes.set(route.method, route)
    }
  }

  /** Whether there is a route with this path, for any method. */
  has(path: string): boolean {
    const { branch } = this.#find(path)
    return branch !== undefined && branch.routes.size > 0
  }

  #find(path: string): { branch: Branch | undefined; values: string[] } {
    const values: string[] = []
    let branch: Branch | undefined = this.#root
    for (const segment of segmentsOf(path)) {
      const fixed: Branch | undefined = branch?.fixed.get(segment)
      if (fixed === undefined) values.push(segment)
      branch = fixed ?? branch?.variable
    }
    return { branch, values }
  }

  /** Throws `RequestRefused` if there is no such path, or none with this method. */
  match(method: string, path: string): Match {
    const { branch, values } = this.#find(path)
    if (branch === undefined || branch.routes.size === 0) {
      throw new RequestRefused(404, 'The path does not exist', 'See /openapi.json for all paths.')
    }
    const route = branch.routes.get(method === 'HEAD' ? 'GET' : method)
    if (route === undefined) {
      const allowed = [...branch.routes.keys()].join(', ')
      throw new RequestRefused(405, `The method must be one of ${allowed}`)
    }
    return { route, params: paramsOf(route, values) }
  }
}

function newBranch(): Branch {
  return { fixed: new Map(), routes: new Map() }
}

function next(branch: Branch, segment: string): Branch {
  if (segment.startsWith('{')) {
    branch.variable ??= newBranch()
    return branch.variable
  }
  const there = branch.fixed.get(segment) ?? newBranch()
  branch.fixed.set(segment, there)
  return there
}

function segmentsOf(path: string): string[] {
  return path.split('/').slice(1)
}

/** The names of the parameters of a path, in order. */
export function parametersOf({ path }: Pick<Route, 'path'>): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string)
}

function paramsOf(route: Route, values: readonly string[]): Record<string, string> {
  const params: Record<string, string> = {}
  for (const [i, name] of parametersOf(route).entries()) {
    const value = decode(values[i] ?? '')
    const why = text(value, PARAMETER_MAX)
    if (why !== undefined) throw new RequestRefused(400, `"${name}" in the path ${why}`)
    params[name] = value
  }
  return params
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new RequestRefused(400, 'The path is not encoded correctly')
  }
}
