/** The files that `pawl init` writes, and what it prints about frameworks. */
import type { Framework, Project } from './detect.ts'

/** A file, with a path relative to the folder of the project. */
export interface NewFile {
  readonly path: string
  readonly text: string
}

/** The name that ends a module of this project. */
export function endingOf({ language, isModule }: Project): string {
  if (language === 'typescript') return isModule ? 'ts' : 'mts'
  return isModule ? 'js' : 'mjs'
}

export function filesOf(project: Project): readonly NewFile[] {
  const ending = endingOf(project)
  return [
    { path: `pawl.config.${ending}`, text: configText(ending) },
    { path: `jobs/hello.${ending}`, text: jobText(project) },
    { path: `worker.${ending}`, text: workerText(project) },
  ]
}

function configText(ending: string): string {
  return `import { defineConfig } from 'pawl/config'

export default defineConfig({
  // The environment variable PAWL_STORE outranks it, for example with postgres://… in production.
  store: 'sqlite:./.pawl/jobs.db',
  jobs: ['./jobs/hello.${ending}'],
  // Ended jobs are kept without limit. To let workers remove old ones:
  // retention: { succeeded: '30d', failed: '90d', cancelled: '30d' },
})
`
}

function jobText({ language }: Project): string {
  const isTyped = language === 'typescript'
  const imports = isTyped ? 'defineJob, typed' : 'defineJob'
  const input = isTyped
    ? '  input: typed<{ name: string }>(), // or any Standard Schema, such as Zod\n'
    : ''
  return `import { ${imports} } from 'pawl'

export const hello = defineJob({
  name: 'hello',
${input}  retry: { max: 3, delay: '1s' },
  async run({ input, step }) {
    // A step runs once per job: a later attempt gets its stored result.
    const greeting = await step('greet', () => \`Hello \${input.name}\`)
    return { greeting }
  },
})
`
}

/** The name by which a file of the project imports another one. */
function importOf(project: Project, name: string): string {
  const ending = endingOf(project)
  if (project.language === 'javascript' || project.importsByTs) return `${name}.${ending}`
  return `${name}.${ending.replace('ts', 'js')}`
}

function workerText(project: Project): string {
  const isTyped = project.language === 'typescript'
  const run = isTyped
    ? '// Compile it, or run it with tsx. `pawl work` does the same without this file.'
    : '// `pawl work` does the same without this file.'
  return `// A worker as a program of your own, for production.
${run}
import { createPawl } from 'pawl'
import { hello } from './${importOf(project, 'jobs/hello')}'

const pawl = await createPawl({
  store: process.env.PAWL_STORE ?? 'sqlite:./.pawl/jobs.db',
  jobs: [hello],
})
const worker = await pawl.work()
console.log(\`Worker \${worker.id} runs.\`)

// The first signal lets running jobs finish; a second one releases them at once.
for (const signal of ['SIGINT', 'SIGTERM']${isTyped ? ' as const' : ''}) {
  process.on(signal, () => void worker.stop())
}
await worker.ended
await pawl.close()
`
}

/** The scripts of `package.json`. */
export function scriptsOf(project: Project): Readonly<Record<string, string>> {
  const worker =
    project.language === 'javascript' ? `node worker.${endingOf(project)}` : 'pawl work'
  return { 'pawl:dev': 'pawl dev', 'pawl:worker': worker }
}

/** How to mount the HTTP API; docs/guides/http.md has the same, and tests of each. */
export const RECIPES: Readonly<Record<Framework, readonly [name: string, lines: string[]]>> = {
  next: [
    'Next.js',
    [
      "In app/pawl/[...path]/route.ts, with createHttpApi of 'pawl/http':",
      "const api = createHttpApi({ pawl, basePath: '/pawl', authorize })",
      'export const GET = api.fetch',
      'export const POST = api.fetch',
    ],
  ],
  nest: [
    'Nest',
    [
      "In main.ts, with createHttpApi and toNodeHandler of 'pawl/http', before any body parser:",
      'const app = await NestFactory.create(AppModule, { bodyParser: false })',
      "app.use('/pawl', toNodeHandler(createHttpApi({ pawl, basePath: '/pawl', authorize })))",
    ],
  ],
  fastify: [
    'Fastify',
    [
      "With createHttpApi and toNodeHandler of 'pawl/http', in a scope of its own:",
      'scope.removeAllContentTypeParsers()',
      "scope.all('/pawl/*', (request, reply) => {",
      '  reply.hijack()',
      '  toNodeHandler(api)(request.raw, reply.raw)',
      '})',
    ],
  ],
  express: [
    'Express',
    [
      "With createHttpApi and toNodeHandler of 'pawl/http', before express.json():",
      "app.use('/pawl', toNodeHandler(createHttpApi({ pawl, basePath: '/pawl', authorize })))",
    ],
  ],
  hono: [
    'Hono',
    [
      "With createHttpApi of 'pawl/http':",
      "app.mount('/pawl', createHttpApi({ pawl, basePath: '/pawl', authorize }).fetch)",
    ],
  ],
}
