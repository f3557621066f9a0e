/**
 * The dashboard: static files, the same in every installation. They contain no data, so they need
 * no token, like a page to log in. Everything that they show comes from the API, with its rules of
 * access.
 *
 *   /assets/…     by its name, which contains a hash of the content: browsers may keep it
 *   other paths   the page, if a browser asks for a document; the page reads the path itself
 *
 * The page names its scripts and styles by relative addresses. `<base href>` says where the
 * dashboard is mounted, because the same page is served at every path below that.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { ownUrl } from '../environment/own-url.ts'
import type { Incoming, Outgoing } from './exchange.ts'

/** No inline scripts and styles, no other hosts, no frames, no forms that leave the page. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

/** Both `src/http` and `dist/http` are two folders below the root of the package. */
const FOLDER = '../../dist/dashboard/'
const ASSETS = '/assets/'

interface Asset {
  readonly plain: Uint8Array
  readonly zipped: Uint8Array
  readonly headers: Readonly<Record<string, string>>
}

interface Files {
  readonly page: string
  readonly assets: ReadonlyMap<string, Asset>
}

/** Whether a request asks for a file of the dashboard. Paths of the API are matched before. */
export function isForDashboard({ method, header }: Incoming, path: string): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  if (path.startsWith(ASSETS)) return true
  return (
    path === '/' || (!path.startsWith('/api/') && (header('accept') ?? '').includes('text/html'))
  )
}

/** Whether a browser opens the page, also by a link of another site, which it may. */
export function opensPage({ header }: Incoming, path: string): boolean {
  const mode = header('sec-fetch-mode')
  return !path.startsWith(ASSETS) && mode === 'navigate' && header('sec-fetch-dest') === 'document'
}

/** The files of the dashboard. They are read once, when the first of them is asked for. */
export class Dashboard {
  #files: Promise<Files | undefined> | undefined

  /** Returns undefined if there is no such file, or if the package was bundled without them. */
  async answer(request: Incoming, path: string, basePath: string): Promise<Outgoing | undefined> {
    this.#files ??= readFiles()
    const files = await this.#files
    if (files === undefined) return undefined
    if (!path.startsWith(ASSETS)) return pageFor(request, files.page, basePath)
    const asset = files.assets.get(path.slice(ASSETS.length))
    return asset && assetFor(request, asset)
  }
}

async function readFiles(): Promise<Files | undefined> {
  const folder = new URL(FOLDER, ownUrl(import.meta.url))
  try {
    const page = await readFile(new URL('index.html', folder), 'utf8')
    const names = await readdir(new URL('assets/', folder))
    const read = names.map(async (name): Promise<[string, Asset]> => {
      return [name, assetOf(name, await readFile(new URL(`assets/${name}`, folder)))]
    })
    return { page, assets: new Map(await Promise.all(read)) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function assetOf(name: string, plain: Uint8Array): Asset {
  const type = TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
  const isHashed = /-[\w-]{10}\.\w+$/.test(name)
  const headers = {
    'content-type': type,
    'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    etag: etagOf(plain),
    vary: 'accept-encoding',
  }
  return { plain, zipped: gzipSync(plain, { level: 9 }), headers }
}

function assetFor(request: Incoming, { plain, zipped, headers }: Asset): Outgoing {
  if (isKnown(request, headers.etag)) return { status: 304, headers, body: undefined }
  const takesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/.test(
    request.header('accept-encoding') ?? '',
  )
  const body = takesGzip ? zipped : plain
  return {
    status: 200,
    headers: {
      ...headers,
      'content-length': String(body.byteLength),
      ...(takesGzip && { 'content-encoding': 'gzip' }),
    },
    body: request.method === 'HEAD' ? undefined : body,
  }
}

function pageFor(request: Incoming, page: string, basePath: string): Outgoing {
  // A base path consists of letters, digits and `/._~-`, so it needs no escaping.
  const body = page.replace('{base}', `${basePath}/`)
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'content-security-policy': POLICY,
    'cross-origin-opener-policy': 'same-origin',
    etag: etagOf(body),
    vary: 'x-forwarded-prefix, accept',
  }
  if (isKnown(request, headers.etag)) return { status: 304, headers, body: undefined }
  return { status: 200, headers, body: request.method === 'HEAD' ? undefined : body }
}

function etagOf(content: string | Uint8Array): string {
  return `"${createHash('sha256').update(content).digest('base64url').slice(0, 27)}"`
}

function isKnown({ header }: Incoming, etag: string | undefined): boolean {
  const known = (header('if-none-match') ?? '').split(',').map((one) => one.trim())
  return etag !== undefined && (known.includes(etag) || known.includes(`W/${etag}`))
}
