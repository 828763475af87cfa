import { readdirSync, readFileSync } from 'node:fs';
import { Eta } from 'eta';
import { escapeHtml } from '#services/shell/page.ts';

/**
 * The templates: the files of `views/`, compiled once as this file is loaded. `<%= … %>` escapes, always; `<%~ … %>` is
 * for parts of other templates and for what this folder itself has made.
 */

const folder = new URL('views/', import.meta.url);

const engine = new Eta({
  autoEscape: true,
  cache: true,
  escapeFunction: (value: unknown) => escapeHtml(String(value)),
});

for (const file of readdirSync(folder).filter((name) => name.endsWith('.eta'))) {
  engine.loadTemplate(`@${file.slice(0, -'.eta'.length)}`, readFileSync(new URL(file, folder), 'utf8'));
}

/** @param view name of the file, without its ending */
export const render = (view: string, data: object): string => engine.render(`@${view}`, data);
