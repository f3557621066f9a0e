// Each planted bug changes one place of the built package. `npm run prove` plants and hunts them.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { CANARIES } from '../../sim/canaries.ts'

it('every planted bug fits exactly one place of the package', () => {
  const misfits = CANARIES.flatMap(({ name, changes }) =>
    changes
      .filter(({ file, find }) => readFileSync(join('dist', file), 'utf8').split(find).length !== 2)
      .map(({ file }) => `${name}: ${file}`),
  )
  expect(misfits).toEqual([])
})
