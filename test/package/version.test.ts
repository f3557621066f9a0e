// The version that the sources state is that of the package.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { VERSION } from '../../src/environment/version.ts'

it('the version in the sources is that of package.json', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  expect(VERSION).toBe(version)
})
