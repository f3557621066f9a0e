/** The address bar: pages by path, and filters in the query. Paths are below `<base href>`. */
import { signal } from '@preact/signals'
import { BASE } from './api/client.ts'

const root = new URL(BASE).pathname

/** Where the person is: the path without the base, which begins with `/`, and the query. */
export interface Place {
  readonly path: string
  readonly query: URLSearchParams
}

function placeNow(): Place {
  const { pathname, search } = window.location
  const path = `/${pathname.startsWith(root) ? pathname.slice(root.length) : ''}`
  return { path, query: new URLSearchParams(search) }
}

export const place = signal<Place>(placeNow())

/** The address of a page: `hrefOf('/jobs', { state: 'failed' })`. */
export function hrefOf(path: string, query: Readonly<Record<string, unknown>> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const search = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString()
  return `${root}${path.slice(1)}${search === '' ? '' : `?${search}`}`
}

export function jobHref(id: string): string {
  return hrefOf(`/jobs/${encodeURIComponent(id)}`)
}

export function runHref(id: string): string {
  return hrefOf(`/runs/${encodeURIComponent(id)}`)
}

export const flowHref = (id: string) => hrefOf(`/flows/${encodeURIComponent(id)}`)
export const queueHref = (name: string) => hrefOf(`/queues/${encodeURIComponent(name)}`)
export const scheduleHref = (name: string) => hrefOf(`/schedules/${encodeURIComponent(name)}`)

/** The page of a limit, or of one key of it. */
export function limitHref(limit: string, key?: string): string {
  return hrefOf(`/limits/${encodeURIComponent(limit)}`, { key })
}

/** Goes to an address of the dashboard. `replace` leaves no entry in the history. */
export function go(href: string, { replace = false } = {}): void {
  const before = place.value.path
  if (replace) history.replaceState(null, '', href)
  else history.pushState(null, '', href)
  place.value = placeNow()
  if (place.value.path !== before) window.scrollTo(0, 0)
}

/** Changes some fields of the query; an empty text or undefined removes one. */
export function setQuery(
  changes: Readonly<Record<string, string | undefined>>,
  options?: { replace?: boolean },
): void {
  const query = new URLSearchParams(place.value.query)
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined || value === '') query.delete(key)
    else query.set(key, value)
  }
  go(hrefOf(place.value.path, Object.fromEntries(query)), options)
}

/** Follows links of the dashboard without loading the page again. */
export function startRouter(): void {
  window.addEventListener('popstate', () => {
    place.value = placeNow()
  })
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    const href = link?.getAttribute('href')
    if (!link || !href || link.hasAttribute('download') || link.hasAttribute('target')) return
    const url = new URL(href, BASE)
    if (url.origin !== window.location.origin || !url.pathname.startsWith(root)) return
    if (url.hash !== '' || url.pathname.startsWith(`${root}api/`)) return
    event.preventDefault()
    go(`${url.pathname}${url.search}`)
  })
}

/** The parameters of a path such as `/jobs/:id`; undefined if it is another path. */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [pattern.split('/'), path.replace(/\/$/, '').split('/')]
  if (wanted.length !== Math.max(given.length, 2)) return undefined
  const params: Record<string, string> = {}
  for (const [i, part] of wanted.entries()) {
    const own = given[i] ?? ''
    if (part.startsWith(':')) params[part.slice(1)] = decoded(own)
    else if (part !== own) return undefined
  }
  return params
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
