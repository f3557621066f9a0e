// The page of the doctor lists the promises in the words of the README.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { PROMISES } from '../../dashboard/doctor/promises.ts'

it('the page of the doctor has the promises of the README, in order', () => {
  const rows = [...readFileSync('README.md', 'utf8').matchAll(/^\| (P\d+) \| (.*?) \| /gm)]
  const listed = rows.map(([, name, says = '']) => [name, says.replaceAll('`', '')])
  expect(listed.length).toBe(19)
  expect(PROMISES).toEqual(listed)
})
