// Builds the dashboard into dist/dashboard: one script, one style sheet and the page. Names of
// assets contain a hash of their content, so that browsers may cache them without end.
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const SOURCE = 'dashboard'
/** The libraries inside of the script, whose licences must be published with it. */
const BUNDLED = ['preact', '@preact/signals', '@preact/signals-core']

/** Writes the dashboard to a folder, which it creates. */
export async function buildDashboard(folder) {
  // Loaded here, because it is not installed yet when this file is.
  const { build } = await import('rolldown')
  const { output } = await build({
    input: join(SOURCE, 'main.tsx'),
    tsconfig: join(SOURCE, 'tsconfig.json'),
    platform: 'browser',
    transform: { target: 'es2022' },
    write: false,
    output: { format: 'esm', minify: true, codeSplitting: false },
    logLevel: 'warn',
  })
  const [script] = output
  const css = readdirSync(join(SOURCE, 'css')).sort()
  const style = css.map((name) => readFileSync(join(SOURCE, 'css', name), 'utf8')).join('\n')
  mkdirSync(join(folder, 'assets'), { recursive: true })
  const names = {
    script: writeAsset(folder, 'dashboard', 'js', script.code),
    style: writeAsset(folder, 'dashboard', 'css', withoutComments(style)),
  }
  const page = readFileSync(join(SOURCE, 'index.html'), 'utf8')
  const filled = page.replaceAll(/\{(script|style)\}/g, (_, name) => names[name])
  writeFileSync(join(folder, 'index.html'), filled)
  copyFileSync(join(SOURCE, 'icon.svg'), join(folder, 'assets/icon.svg'))
  const licences = BUNDLED.map((name) => {
    const text = readFileSync(join('node_modules', name, 'LICENSE'), 'utf8')
    return `${name}\n\n${text.trim()}\n`
  })
  writeFileSync(join(folder, 'LICENSES.txt'), licences.join('\n'))
}

function writeAsset(folder, name, ending, text) {
  const hash = createHash('sha256').update(text).digest('base64url').slice(0, 10)
  const path = `assets/${name}-${hash}.${ending}`
  writeFileSync(join(folder, path), text)
  return path
}

/** Comments and indentation of style sheets; no text in them contains either. */
function withoutComments(css) {
  return css
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/\s*\n\s*/g, '\n')
    .trim()
}
