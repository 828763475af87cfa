import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

/** Types of the contract by openapi-typescript, for openapi-fetch. */

// It writes its output with the compiler of TypeScript 5, which this project has beside its own.
registerHooks({
  resolve: (specifier, context, next) => next(specifier === 'typescript' ? 'typescript-5' : specifier, context),
});

/** The declarations as a text. */
export const typesOf = async (contractFile: string): Promise<string> => {
  const { default: openapiTS, astToString } = await import('openapi-typescript');
  return astToString(await openapiTS(pathToFileURL(contractFile)));
};
