/**
 * R4's pipeline on a folder of Markdown: pages are taken, read and planned; sections are
 * drafted in parallel, linked, checked and mended; and the result is proposed as a branch with a
 * commit. Kill it anywhere and resume it: nothing that has finished is done again.
 */
import { typed } from 'pawl'
import { defineRun, type RunContext } from 'pawl/runs'
import { propose } from './git.ts'
import {
  brokenLinksOf,
  draftOf,
  linkUp,
  type Page,
  readPage,
  slugOf,
  withoutLinks,
} from './markdown.ts'

/** Where the pages are, and where the result goes. */
export interface DocsInput {
  readonly source: string
  readonly repository: string
}

interface Section {
  readonly slug: string
  readonly page: string
}

type Run = RunContext<DocsInput>

const sectionsOf = (run: Run) => run.artifact('plan').json<Section[]>()
const siteOf = (run: Run, slug: string) => run.artifact(`site/${slug}.md`)

/** The pipeline. */
export const docsPipeline = defineRun({
  name: 'docs-pipeline',
  input: typed<DocsInput>(),
  nodes: {
    CREATED: async (run) => {
      await run.inputFolder('pages', { path: run.input.source, extensions: ['.md'] })
      return 'CLONED_INPUTS'
    },

    CLONED_INPUTS: async (run) => {
      const pages = await run.artifact('pages').json<string[]>()
      await run.each(pages, { key: (name) => `ingest ${name}`, concurrency: 4 }, async (name) => {
        const page = readPage(name, await run.artifact(name).text())
        await run.artifact(`read/${name}`).writeJson(page)
      })
      return 'INGESTED'
    },

    INGESTED: async (run) => {
      await run.work('extract facts', {}, async () => {
        const terms: Record<string, string> = {}
        let words = 0
        for (const name of await run.artifact('pages').json<string[]>()) {
          const page = await run.artifact(`read/${name}`).json<Page>()
          words += page.words
          for (const term of Object.keys(page.terms)) terms[term] = slugOf(page.title)
        }
        await run.artifact('facts').writeJson({ words, terms })
      })
      return 'FACTS_READY'
    },

    FACTS_READY: async (run) => {
      await run.work('plan', {}, async () => {
        const sections: Section[] = []
        for (const page of await run.artifact('pages').json<string[]>()) {
          const { title } = await run.artifact(`read/${page}`).json<Page>()
          sections.push({ slug: slugOf(title), page })
        }
        await run.artifact('plan').writeJson(sections)
      })
      return 'PLAN_READY'
    },

    PLAN_READY: async () => 'DRAFTING',

    DRAFTING: async (run) => {
      const sections = await sectionsOf(run)
      const each = { key: ({ slug }: Section) => `draft ${slug}`, concurrency: 3 }
      await run.each(sections, each, async ({ slug, page }) => {
        const draft = draftOf(await run.artifact(`read/${page}`).json<Page>())
        await run.artifact(`draft/${slug}.md`).write(draft)
      })
      for (const { slug } of sections) await run.section(slug).set('drafted')
      return 'DRAFT_READY'
    },

    DRAFT_READY: async () => 'LINKING',

    LINKING: async (run) => {
      const sections = await sectionsOf(run)
      await run.each(sections, { key: ({ slug }) => `link ${slug}` }, async ({ slug }) => {
        const { terms } = await run.artifact('facts').json<{ terms: Record<string, string> }>()
        await siteOf(run, slug).write(linkUp(await run.artifact(`draft/${slug}.md`).text(), terms))
      })
      return 'VALIDATING'
    },

    VALIDATING: async (run) => {
      const problems = await validate(run)
      for (const [slug, broken] of Object.entries(problems)) {
        const message = `${slug} links to what is not there: ${broken.join(', ')}`
        await run.issue.open(`BrokenLinks:${slug}`, { severity: 'error', message })
      }
      const ok = Object.keys(problems).length === 0
      await run.validation(ok)
      return ok ? 'READY_FOR_PR' : 'FIXING'
    },

    FIXING: async (run) => {
      const problems = Object.entries(await validate(run))
      await run.each(
        problems,
        { key: ([slug]) => `fix ${slug}`, inputs: ([, b]) => ({ b }) },
        async ([slug, broken]) => {
          const page = siteOf(run, slug)
          await page.write(withoutLinks(await page.text(), broken))
        },
      )
      for (const [slug] of problems) await run.issue.resolve(`BrokenLinks:${slug}`)
      return 'VALIDATING'
    },

    READY_FOR_PR: async (run) => {
      const sections = await sectionsOf(run)
      // Declared, so that other pages are another key, and hence another commit.
      const inputs = Object.fromEntries(sections.map(({ slug }) => [slug, siteOf(run, slug)]))
      const { commit } = await run.work('open pull request', { inputs }, async (item) => {
        const files = new Map<string, string>()
        for (const { slug } of sections) {
          files.set(`docs/${slug}.md`, await siteOf(run, slug).text())
        }
        const { repository } = run.input
        const branch = `docs/${run.runId}`
        return { branch, commit: propose({ repository, branch, files, key: item.effectKey }) }
      })
      await run.linkCommit(commit)
      return 'PR_OPENED'
    },

    PR_OPENED: async (run) => {
      for (const { slug } of await sectionsOf(run)) await run.section(slug).set('proposed')
      return 'DONE'
    },
  },
})

/** Links that lead nowhere, by section; one that was never written is a failure of the run. */
function validate(run: Run): Promise<Record<string, string[]>> {
  return run.work('validate', {}, async () => {
    const sections = await sectionsOf(run)
    const slugs = sections.map(({ slug }) => slug)
    const problems: Record<string, string[]> = {}
    for (const slug of slugs) {
      if (siteOf(run, slug).sha256 === undefined) run.fail(`section ${slug} is missing`)
      const broken = brokenLinksOf(await siteOf(run, slug).text(), slugs)
      if (broken.length > 0) problems[slug] = broken
    }
    return problems
  })
}
