// Whether the mutation run could begin. It takes too long to be part of `npm test`, so that nobody
// would notice for weeks that its tests no longer find what they ask for.

import { PawlError } from 'pawl'
import * as pawl from 'pawl/errors'
import { expect, it } from 'vitest'
import * as core from '../mutation/core.ts'

it('the tests of the core find every error in what the mutation run knows as pawl', () => {
  const errors = Object.entries(pawl).filter(
    ([, value]) => typeof value === 'function' && value.prototype instanceof PawlError,
  )
  expect(errors.length).toBeGreaterThan(50)
  const missing = errors.map(([name]) => name).filter((name) => !(name in core))
  expect(missing).toEqual([])
})
