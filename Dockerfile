FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# Static, with the time zones inside: the image below has nothing but this file
# and the certificate authorities.
RUN CGO_ENABLED=0 go build -ldflags='-s -w' -o /holdfast .

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /holdfast /holdfast
USER 65532:65532
# 8080 pages and API, 8081 operators of the door, 8082 operators of the worker.
EXPOSE 8080 8081 8082
ENTRYPOINT ["/holdfast"]
