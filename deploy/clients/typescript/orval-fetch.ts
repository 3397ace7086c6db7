// The function by which the client of orval sends requests: it adds the address of Assay and the token.

export const connection = { baseUrl: "", token: "" };

export async function call<T>(path: string, options: RequestInit): Promise<T> {
  const headers = new Headers(options.headers);
  if (connection.token) headers.set("Authorization", `Bearer ${connection.token}`);
  const response = await fetch(connection.baseUrl + path, { ...options, headers });
  const isJson = /^application\/([a-z]+\+)?json\b/.test(response.headers.get("Content-Type") ?? "");
  const data: unknown = isJson ? await response.json() : await response.blob();
  return { data, status: response.status, headers: response.headers } as T;
}
