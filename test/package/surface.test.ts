// The public surface: what users can import, and how they get there from earlier versions. Reads
// the declarations in dist.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { type ApiExport, readApi } from '../../scripts/documents/api-model.ts'

const entries = readApi()
const namesOf = new Map(
  entries.map(({ name, exports }) => [name, new Set(exports.map((one) => one.name))]),
)
const shape = ({ declarations }: ApiExport) => declarations.join('\n')

/** What the version before the subpaths exported, by entry. */
const before: Readonly<Record<string, readonly string[]>> = JSON.parse(
  readFileSync('test/package/names-before.json', 'utf8'),
)

/** A row of the table of import paths in the changelog, for one name. */
interface Moved {
  readonly from: string
  readonly to: string
  readonly name: string
  /** The name that it has now; undefined if it was removed. */
  readonly now: string | undefined
}

const moved = [
  ...readFileSync('CHANGELOG.md', 'utf8').matchAll(/^\| `(pawl\S*)` \| (.+) \| (.+) \|$/gm),
]
  .map(([, from = '', target = '', names = '']) => ({ from, target, names }))
  .flatMap(({ from, target, names }) =>
    names.split(', ').map((item): Moved => {
      const [name = '', renamed] = [...item.matchAll(/`(\w+)`/g)].map(([, word]) => word)
      const to = /^`(\S+)`/.exec(target)?.[1]
      return { from, to: to ?? '', name, now: to === undefined ? undefined : (renamed ?? name) }
    }),
  )

it('pawl itself stays small: at most 190 names', () => {
  expect(namesOf.get('pawl')?.size).toBeLessThanOrEqual(190)
})

it('a name that several entries export is the same thing in each', () => {
  const shapes = new Map<string, Set<string>>()
  for (const one of entries.flatMap(({ exports }) => exports)) {
    shapes.set(one.name, (shapes.get(one.name) ?? new Set()).add(shape(one)))
  }
  expect([...shapes].filter(([, found]) => found.size > 1).map(([name]) => name)).toEqual([])
})

it('every type in the signature of a function is exported by the same entry', () => {
  const missing = entries.flatMap(({ name, exports }) =>
    exports
      .filter(({ kind }) => kind === 'function')
      .flatMap((one) => one.mentions.map((type) => ({ from: `${name}.${one.name}`, type })))
      .filter(({ type }) => !namesOf.get(name)?.has(type)),
  )
  expect(missing).toEqual([])
})

it('every exported function says what it does', () => {
  const silent = entries.flatMap(({ name, exports }) =>
    exports
      .filter(({ kind, says }) => kind === 'function' && says === '')
      .map((one) => `${name}.${one.name}`),
  )
  expect(silent).toEqual([])
})

it('every name that was exported before is where the changelog says, or where it was', () => {
  const lost = Object.entries(before).flatMap(([from, names]) =>
    names
      .filter((name) => {
        const row = moved.find((one) => one.from === from && one.name === name)
        if (!row) return !namesOf.get(from)?.has(name)
        return row.now !== undefined && !namesOf.get(row.to)?.has(row.now)
      })
      .map((name) => `${from}.${name}`),
  )
  expect(lost).toEqual([])
  expect(moved.length).toBeGreaterThan(250)
})

it('the changelog moves no name that was not there or is still there', () => {
  const wrong = moved.filter(
    ({ from, name, now }) =>
      !before[from]?.includes(name) || (now === name && namesOf.get(from)?.has(name)),
  )
  expect(wrong).toEqual([])
})
