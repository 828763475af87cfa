import { MissingTool } from '#contracts/sdk/shell.ts';

/** What was made; or, where a tool cannot be had, what is missing: the tests that need it are left out, and say so. */
export const orMissing = <T>(making: Promise<T>): Promise<T | { readonly missing: string }> =>
  making.catch((error: unknown) => {
    if (error instanceof MissingTool) return { missing: error.message };
    throw error;
  });
