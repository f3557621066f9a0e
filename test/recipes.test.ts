// The recipes for contributors name files that exist.
import { existsSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'

/** The paths that a text names in code spans; of a file to be made, the folder. */
function pathsIn(text: string): string[] {
  const spans = Array.from(text.matchAll(/`((?:src|test|docs|sim)\/[^`\s]*)`/g), ([, path]) => path)
  return spans.map((path) => (path?.includes('<') ? dirname(path) : (path as string)))
}

const [, section = ''] = readFileSync('CONTRIBUTING.md', 'utf8').split('## How to add\n')
const recipes = section.split(/^## /m)[0]?.split(/^### /m).slice(1) ?? []

describe('the recipes in CONTRIBUTING.md', () => {
  it('cover what contributors add most', () => {
    const titles = recipes.map((recipe) => recipe.split('\n')[0])
    for (const thing of [
      'command of jobs',
      'verb',
      'column',
      'migration',
      'pawl',
      'check',
      'error',
    ])
      expect(titles.some((title) => title?.includes(thing))).toBe(true)
  })

  it.each(recipes.map((recipe) => [recipe.split('\n')[0] as string, recipe] as const))(
    '%s: every file that is named exists',
    (_, recipe) => {
      const paths = pathsIn(recipe)
      expect(paths.length).toBeGreaterThan(0)
      expect(paths.filter((path) => !existsSync(path))).toEqual([])
    },
  )

  it('would notice a file that is gone', () => {
    expect(pathsIn('`src/stores/waking.ts`').filter((path) => existsSync(path))).toEqual([])
    expect(pathsIn('`src/stores/verbs/<verb>.ts`')).toEqual(['src/stores/verbs'])
  })
})
