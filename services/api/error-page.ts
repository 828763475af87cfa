import type { ErrorPage } from './errors.ts';
import { escapeHtml, page } from './html.ts';

/** An entry of the catalogue, for programs and for people. */

export const showError = ({ code, status, category, title, about }: ErrorPage, baseUrl: string) => ({
  object: 'error' as const,
  code,
  type: `${baseUrl}/errors/${code}`,
  status,
  category,
  title,
  about,
});

export const errorHtml = ({ code, status, title, about }: ErrorPage): string =>
  page(
    title,
    `<h1>${escapeHtml(title)}</h1>
<p><code>${escapeHtml(code)}</code>${status === null ? '' : ` · HTTP ${status}`}</p>
<p>${escapeHtml(about)}</p>`,
  );

export const exampleError = {
  object: 'error',
  code: 'not_found',
  type: 'https://api.example/v1/errors/not_found',
  status: 404,
  category: 'request',
  title: 'The resource does not exist',
  about: 'The API has no such path, or the path has an id that is unknown, malformed or of another workspace.',
};
