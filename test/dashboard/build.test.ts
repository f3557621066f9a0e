// What is built: its size, its colours, and what it contains.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'

const folder = 'dist/dashboard'
const assets = readdirSync(join(folder, 'assets'))
const read = (name: string) => readFileSync(join(folder, 'assets', name), 'utf8')
const scripts = assets.filter((name) => name.endsWith('.js'))

it('the script is below 120 kB gzipped', () => {
  const bytes = scripts.map((name) => gzipSync(read(name)).byteLength)
  expect(bytes.length).toBe(1)
  expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThan(120_000)
})

it('nothing names another host, except the namespaces of markup', () => {
  for (const name of assets) {
    const hosts = (read(name).match(/https?:\/\/[\w.-]+/g) ?? []).filter(
      (host) => host !== 'http://www.w3.org',
    )
    expect(hosts, name).toEqual([])
  }
})

it('the page has no inline script, style or handler', () => {
  const page = readFileSync(join(folder, 'index.html'), 'utf8')
  expect(page).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|\sstyle=/i)
})

describe('every colour has a contrast of 4.5 : 1 on every ground', () => {
  const css = readFileSync('dashboard/css/10-tokens.css', 'utf8')
  const themes = [...css.matchAll(/:root([^{]*)\{([^}]*)\}/g)].map(([, name = '', body = '']) => ({
    name: name === '' ? 'light' : 'dark',
    colours: new Map(
      [...body.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, key = '', value = '']) => [
        key,
        value,
      ]),
    ),
  }))
  const grounds = ['bg', 'panel', 'soft']
  it.each(themes)('$name', ({ colours }) => {
    const texts = [...colours.keys()].filter((key) => ![...grounds, 'line'].includes(key))
    expect(texts.length).toBeGreaterThanOrEqual(15)
    const weak = texts.flatMap((text) =>
      grounds
        .map((ground) => ({ text, ground, value: contrast(colours, text, ground) }))
        .filter(({ value }) => value < 4.5),
    )
    expect(weak).toEqual([])
  })
})

function contrast(colours: ReadonlyMap<string, string>, a: string, b: string): number {
  const [dark = 0, light = 0] = [a, b]
    .map((key) => luminance(colours.get(key) ?? '#000000'))
    .sort((x, y) => x - y)
  return (light + 0.05) / (dark + 0.05)
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
