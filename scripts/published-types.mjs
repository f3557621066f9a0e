// Which built files the package publishes. Declarations: those that its entries reach; the others
// describe the inside, and users cannot import them. Modules: all but those of types alone, which
// are empty and which no module loads. `dist/.npmignore` keeps the rest out of the package.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const IMPORT = /(?:from|import\()\s*['"](\.{1,2}\/[^'"]+)\.(?:ts|js)['"]/g

/** Writes `dist/.npmignore`. */
export function leaveOutInnerTypes() {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))
  const entries = Object.values(exports).flatMap(({ types }) => (types ? [join(types)] : []))
  const published = reachedFrom(entries)
  const inner = readdirSync('dist', { recursive: true })
    .map((name) => join('dist', name))
    .filter((path) => (path.endsWith('.d.ts') ? !published.has(path) : isEmpty(path)))
    .sort()
  const lines = ['.npmignore', '.stamp', ...inner.map((path) => `/${relative('dist', path)}`)]
  writeFileSync('dist/.npmignore', `${lines.join('\n')}\n`)
}

/** Whether a module has no code, only comments. */
export function isEmpty(path) {
  if (!path.endsWith('.js')) return false
  const code = readFileSync(path, 'utf8').replaceAll(/\/\*[\s\S]*?\*\//g, '')
  return code.trim() === 'export {};'
}

/** The declarations that some declarations import, directly or through others, and themselves. */
function reachedFrom(entries) {
  const reached = new Set()
  const queue = [...entries]
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (reached.has(path)) continue
    if (!existsSync(path)) throw new Error(`${path} is imported, but was not built`)
    reached.add(path)
    for (const [, target] of readFileSync(path, 'utf8').matchAll(IMPORT)) {
      queue.push(join(dirname(path), `${target}.d.ts`))
    }
  }
  return reached
}
